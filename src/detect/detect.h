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

/* Strings: a `const char *` points to a constant. A struct str is a constant, or lies in the arena of the struct findings that holds the finding (made by
 * arena_printf, arena_str, finding_text or finding_evidence): it lives until findings_release, and no finding frees it. */
struct finding {
	const char *detector;          /* the detector's id */
	const char *report;            /* as struct detector says */
	enum finding_severity severity;
	struct str problem;            /* one sentence with the numbers */
	struct str evidence;           /* what the finding was measured on; "" = the problem says all */
	struct str advice;             /* what to do; at first struct detector, fix */
	struct str disprove;           /* what would prove the finding wrong; at first struct detector, disprove */
	bool has_events, has_time, has_share, has_gain, has_window;
	uint64_t events;               /* how many events the finding rests on */
	int64_t time_ns;               /* time of these events in all steps looked at */
	double share_pct;              /* of the time of these steps, or of what the problem says */
	int64_t gain_ns_per_step;      /* an upper bound; only if has_gain */
	struct str bound;              /* how the bound of the gain is computed */
	struct intervals covers;       /* which time the finding is about; only if has_covers; findings_release frees it */
	bool has_covers;
	const char *part_of;           /* the detector whose finding has most of the same time (detect/merge.h); NULL = this finding stands by itself */
	const char *behind;            /* the detector whose finding explains most of this one, as far as findings do: this one stands below it; NULL = none */
	int64_t from_ns, to_ns;        /* only if has_window: where to look first, on the profile's clock: the longest piece of what the finding is about, or the
	                                * step with most of it */
};

struct shared;

/* Which detectors run, and how. {0} = opscope's own detectors. */
struct detect_args {
	const char *experts;  /* name of a struct expert_system: only its detectors run */
	/* For predecessors, which count iterations their own way: the profile given is the part of *whole with the iterations first..last. */
	const struct profile *whole;
	int64_t first, last;
	bool brief;           /* the table has one line about the detectors that are not applicable, in place of one for each reason */
};

struct findings {
	const struct detector *detector; /* the detector that runs now: findings and reasons that are added are its own */
	struct finding *v;
	unsigned n, cap;
	/* Detectors that are not applicable, with the reason. */
	struct not_looked { const char *detector; struct str why; const char *remedy; bool aside; } *missing; /* remedy, aside: not_applicable.h */
	unsigned n_missing, cap_missing;
	bool of_window;                /* there are no steps: gains are of the window that stands in for them */
	bool tells_thinned;            /* a note says that most events were taken out (shared_is_thinned) */
	bool memory_alone;             /* the input is a memory snapshot: no time passes in it */
	struct str *note;              /* sentences under the findings */
	unsigned n_notes, cap_notes;
	struct detect_args args;
	struct shared *shared;         /* detect/parts/shared.h; NULL unless detectors run */
	struct arena arena;            /* owns the strings of findings, reasons and notes */
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
	DETECT_DEVICE_TIMES, /* start and end of device work, not durations alone */
	DETECT_WINDOW,       /* device work in the time looked at (shared_steps) */
};

/* What findings of a detector say about lost time. Findings of a lower value go first where they explain most of the time (detect/merge.h). */
enum detector_symptom {
	SYMPTOM_NONE,   /* why time is lost: the finding names a cause, not a symptom */
	SYMPTOM_PACE,   /* in which way time is lost: launch by launch */
	SYMPTOM_HOST,   /* what the host does while time is lost: it has not launched */
	SYMPTOM_IDLE,   /* only that time is lost: the GPU is idle */
	SYMPTOMS
};

struct detector {
	const char *id;      /* "dataloader-bound" */
	const char *title;
	const char *why;     /* why it matters */
	const char *fix;     /* the general remedy */
	const char *disprove; /* what would prove a finding wrong */
	enum detector_symptom symptom;
	const char *shares;  /* ids of detectors, separated by blanks, whose gains may hold time that the gains of this detector hold, too; one detector of a
	                      * pair names the other; NULL = none */
	const char *report;  /* the report that shows what the findings rest on; NULL = the timeline shows it */
	const struct expert_system *experts; /* the expert system of a predecessor, whose words the findings quote; NULL = a detector of opscope's own */
	enum detector_where where;
	void (*run)(const struct profile *p, struct findings *f);
};

extern const struct detector *const detector_registry[]; /* NULL-terminated, generated */

/* --- for run() of a detector alone: f->detector and f->shared must be set, as detect_run sets them ------------------ */

/* Adds a finding and returns it for filling in. The pointer is valid until the next finding is added. */
struct finding *findings_add(struct findings *f, enum finding_severity s);
/* Adds a finding of an expert system, in its words. Both strings are kept as pointers: constants, or in f->arena. */
void findings_quote(struct findings *f, struct str problem, struct str recommendation);
/* Says why the detector cannot look. The text is copied. */
void findings_missing(struct findings *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same where no option of a recorder helps: `how` says how to find out. Both texts are kept as pointers to constants. */
void findings_missing_aside(struct findings *f, const char *why, const char *how);
/* Adds a sentence under the findings. The text is copied. */
void findings_note(struct findings *f, struct str text);

/* --- for all others: detect_run or detect_all, read, findings_release ---------------------------------------------- */

/* Runs the detectors chosen (and the passes they need), and fills *f; on error *f is empty and need not be released. opscope's own findings are sorted by
 * gain, those without a gain by severity, then in registry order; a part of another finding stands behind it (detect/merge.h). A predecessor's findings
 * stay in registry order. ERR_USAGE when no detector is of args->experts. */
int detect_run(struct profile *p, const struct detect_args *args, struct findings *f, struct err *e);
/* The names of the expert systems that detectors reproduce, each once, in registry order. */
void detect_expert_systems(const char *between, struct buf *out);
/* ERR_USAGE when `experts` is none of these names: "compat=x: expected torch or ...". NULL is opscope itself. */
int detect_check(const char *experts, struct err *e);
/* Runs opscope's own detectors. */
int detect_all(struct profile *p, struct findings *f, struct err *e);
/* The findings as a table: severity, detector, problem, evidence, advice, disprove, gain_ns_per_step, bound, events, time_ns, share_pct, report, from_ns, to_ns;
 * of a predecessor: problem, recommendation. Detectors that are not applicable become notes. Initialises *out, which does not refer to
 * *f afterwards. */
void findings_table(const struct findings *f, struct table *out);
void findings_release(struct findings *f);

#endif
