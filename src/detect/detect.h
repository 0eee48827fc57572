/* Detectors: each looks for one problem and says what it found, or what it would need to look.
 *
 * Adding a detector: a file src/detect/NAME.c that ends in `const struct detector detector_NAME = {...};` and the word NAME in
 * src/detect/meson.build. `opscope advise`, SQL (table findings) and the docs page then have it. */
#ifndef OPSCOPE_DETECT_DETECT_H
#define OPSCOPE_DETECT_DETECT_H

#include "analysis/analysis.h"
#include "base/table.h"

enum finding_severity { FINDING_INFO, FINDING_LOW, FINDING_MEDIUM, FINDING_HIGH };

struct finding {
	const char *detector;          /* its id */
	enum finding_severity severity;
	struct str problem;            /* one sentence with the numbers */
	struct str evidence;           /* what it was measured on */
	struct str advice;             /* what to do */
	bool has_gain;
	int64_t gain_ns_per_step;      /* an upper bound; only if has_gain */
};

struct findings {
	struct finding *v;
	unsigned n, cap;
	/* Detectors that could not look, with the reason. */
	struct not_looked { const char *detector; struct str why; } *missing;
	unsigned n_missing, cap_missing;
	struct arena arena;            /* owns the strings */
};

struct detector {
	const char *id;      /* "dataloader-bound" */
	const char *title;
	const char *why;     /* why it matters */
	const char *fix;     /* the general remedy */
	unsigned needs;      /* enum analysis_pass bits */
	int (*run)(const struct profile *p, struct findings *f, struct err *e);
};

extern const struct detector *const detector_registry[]; /* NULL-terminated, generated */

/* For detectors: adds a finding and returns it for filling in; the strings go into f->arena. */
struct finding *findings_add(struct findings *f, const struct detector *d, enum finding_severity s);
void findings_missing(struct findings *f, const struct detector *d, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void findings_release(struct findings *f);

/* Runs every detector (and the passes they need); findings sorted by severity, then gain, then registry order. */
int detect_all(struct profile *p, struct findings *f, struct err *e);
/* The findings as a table: columns severity, detector, problem, evidence, advice, gain_ns_per_step; detectors that could not
 * look become notes. Initialises *out. */
void findings_table(const struct findings *f, struct table *out);

#endif
