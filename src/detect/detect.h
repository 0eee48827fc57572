/* Detectors: each looks for one problem and says what it found, or what it would need to look.
 *
 * Adding a detector: a file src/detect/NAME.c that ends in `const struct detector detector_NAME = {...};` and the word NAME in
 * src/detect/meson.build. `opscope advise`, SQL (table findings) and the docs page then have it.
 *
 * What a finding must hold: it rests on recorded events, says which and how long they took, bounds the gain by no more than the idle or
 * device time that it concerns, and says what would prove it wrong. Where the input does not tell, a detector says so
 * (findings_missing) and finds nothing: a false finding is worse than none. */
#ifndef OPSCOPE_DETECT_DETECT_H
#define OPSCOPE_DETECT_DETECT_H

#include "analysis/analysis.h"
#include "analysis/time/interval.h"
#include "base/buf.h"
#include "base/table.h"

enum finding_severity { FINDING_INFO, FINDING_LOW, FINDING_MEDIUM, FINDING_HIGH };

struct finding {
	const char *detector;          /* its id */
	const char *report;            /* as struct detector says */
	enum finding_severity severity;
	struct str problem;            /* one sentence with the numbers */
	struct str evidence;           /* what it was measured on */
	struct str advice;             /* what to do */
	struct str disprove;           /* what would prove it wrong */
	bool has_events, has_time, has_share, has_gain, has_window;
	uint64_t events;               /* how many events it rests on */
	int64_t time_ns;               /* their time, in all steps looked at */
	double share_pct;              /* of the time of these steps, or of what the problem says */
	int64_t gain_ns_per_step;      /* an upper bound; only if has_gain */
	struct str bound;              /* how that is computed */
	struct intervals covers;       /* which time it is about; has_covers */
	bool has_covers;
	const char *part_of;           /* the detector whose finding tells of the same cause; NULL = this finding stands by itself */
	int64_t from_ns, to_ns;        /* where to look first, on the profile's clock: the longest piece of what it is about, or the step with most */
};

struct shared;

/* What to run, and how. {0} = opscope's own detectors. */
struct detect_args {
	const char *experts;  /* the detectors of this expert system alone: struct expert_system, name */
	/* For predecessors, which count iterations their own way: the profile given is a part of *whole, its iterations first..last. */
	const struct profile *whole;
	int64_t first, last;
	bool brief;           /* in the table, one line about the detectors that are not applicable */
};

struct findings {
	const struct detector *detector; /* the one that looks now; what is added is its */
	struct finding *v;
	unsigned n, cap;
	/* Detectors that are not applicable, with the reason. */
	struct not_looked { const char *detector; struct str why; const char *remedy; bool aside; } *missing; /* remedy, aside: not_applicable.h */
	unsigned n_missing, cap_missing;
	bool of_window;                /* there are no steps: gains are of the window that stands for them */
	struct str *note;              /* what else there is to say */
	unsigned n_notes, cap_notes;
	struct detect_args args;
	struct shared *shared;         /* detect/parts/shared.h; while detectors run */
	struct arena arena;            /* owns the strings */
};

/* The expert system of a predecessor. */
struct expert_system {
	const char *name;    /* as users type it: "torch" */
	const char *title;   /* what stands above its findings */
	unsigned needs;      /* enum analysis_pass bits: what its detectors look at */
};

/* What the input must have before a detector runs. Each value includes those above it. If the input lacks it, the reason goes into findings.missing. */
enum detector_where {
	DETECT_ANYWHERE,
	DETECT_DEVICE_WORK,  /* device work */
	DETECT_DEVICE_TIMES, /* its times, not its durations alone */
	DETECT_WINDOW,       /* some of it in the time looked at (shared_steps) */
};

struct detector {
	const char *id;      /* "dataloader-bound" */
	const char *title;
	const char *why;     /* why it matters */
	const char *fix;     /* the general remedy */
	const char *disprove; /* what would prove a finding wrong */
	int symptom;         /* 0: its findings say why time is lost; 1: in which way (launch by launch); 2: what happens meanwhile (the host has not launched);
	                      * 3: only that it is lost (the GPU is idle). Where findings of a lower number explain most of the time, they go first */
	const char *shares;  /* ids of detectors, separated by blanks, whose gains may hold some of the time that this one's do; said once of a
	                      * pair; NULL = none */
	const char *report;  /* the report that shows what its findings rest on; NULL = the timeline does */
	const struct expert_system *experts; /* the expert system of a predecessor, whose problem and recommendation it quotes; NULL = opscope's own */
	enum detector_where where;
	void (*run)(const struct profile *p, struct findings *f);
};

extern const struct detector *const detector_registry[]; /* NULL-terminated, generated */

/* For detectors: adds a finding and returns it for filling in (valid until the next is added); the strings go into f->arena. */
struct finding *findings_add(struct findings *f, enum finding_severity s);
/* One of an expert system, in its words. */
void findings_quote(struct findings *f, struct str problem, struct str recommendation);
void findings_missing(struct findings *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same where no option of a recorder helps: `how` says how to find out. Both texts are kept as pointers. */
void findings_missing_aside(struct findings *f, const char *why, const char *how);
/* A sentence under the findings. */
void findings_note(struct findings *f, struct str text);
void findings_release(struct findings *f);

/* Runs the detectors chosen (and the passes they need). opscope's own findings are sorted by gain, those without one by severity, then in registry
 * order; what is part of another finding stands behind it (detect/merge.h); a predecessor's stay in registry order. ERR_USAGE when no detector is of args->experts. */
int detect_run(struct profile *p, const struct detect_args *args, struct findings *f, struct err *e);
/* The names of the expert systems that detectors reproduce, each once, in registry order. */
void detect_expert_systems(const char *between, struct buf *out);
/* ERR_USAGE when `experts` is none of these names: "compat=x: expected torch or ...". NULL is opscope itself. */
int detect_check(const char *experts, struct err *e);
/* opscope's own. */
int detect_all(struct profile *p, struct findings *f, struct err *e);
/* The findings as a table: severity, detector, problem, evidence, advice, disprove, gain_ns_per_step, bound, events, time_ns, share_pct, report, from_ns, to_ns;
 * of a predecessor: problem, recommendation. Detectors that are not applicable become notes. Initialises *out. */
void findings_table(const struct findings *f, struct table *out);

#endif
