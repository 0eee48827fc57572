/* Steps (iterations). Where they come from, the first that applies:
 *   given      calls of the key op that the user named (profile->key_op)
 *   profiler   `ProfilerStep#N` ranges of torch.profiler
 *   named      ranges by which an inference server marks an iteration: serving_formats.def; by which frameworks and people mark a step: step_keys.def,
 *              "train_step 12", "Iteration 7"
 *   optimizer  the end of the optimizer's work: Optimizer.step#*, fused optimizers
 *   period     a pattern of device work (or host ops) that repeats: iterations_period.c; only when that is nearly certain
 *   none       one step "0", the window (enum steps_window_kind)
 * Ranges that hold an iteration are the steps. Calls of an op that is only a part of one are borders: a step goes from call to
 * call, and what is before the first and after the last is kept apart (`edge`): it is no whole step and counts in no mean. The same holds for
 * a range that was not recorded to its end (ARG_NOT_TO_END), unless there is no whole one.
 *
 * Each step but the window is moved and stretched to cover the device work that it launched. The first begins when the device has ended work of the time before it, recorded or not (step_begin.h).
 *
 * Steps at the end do not count when the recording holds no, or not all, device work of them. That needs evidence: a step
 * launched no device work while an earlier one did, or more than a fifth of its launching calls have no device work with their
 * correlation id. A call launches when of the calls of its name in the trace at least a quarter have device work. */
#ifndef OPSCOPE_ANALYSIS_STEPS_STEPS_H
#define OPSCOPE_ANALYSIS_STEPS_STEPS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct intervals;
struct profile;
struct serving;

enum step_source { STEPS_NONE, STEPS_GIVEN, STEPS_PROFILER, STEPS_NAMED, STEPS_OPTIMIZER, STEPS_PERIOD, STEP_SOURCES };
extern const char *const step_source_name[STEP_SOURCES]; /* "given", "profiler", ... */

/* The time that figures are of. Without steps, start-up is left out as far as the recording tells. */
enum steps_window_kind {
	WINDOW_STEPS,      /* steps were found */
	WINDOW_REPEATS,    /* the repeats of a pattern of device work that may be layers as well as steps: from the first to the last repeat */
	WINDOW_DEVICE,     /* from the first to the last device work */
	WINDOW_RECORDING,  /* all of the recording: it holds no device work */
};

struct step {
	struct str name;         /* "5" of ProfilerStep#5; owned by the profile */
	int64_t number;          /* 5; running index when the name is no number */
	int64_t host_start_ns, host_end_ns; /* of the annotation, or from border to border */
	int64_t start_ns, end_ns;           /* with device work */
	int64_t host_until_ns;   /* the latest host_end_ns of this step and all before it */
	uint32_t device_ops;     /* device events that its API calls launched; without steps, those that begin in the window */
	uint32_t launches;       /* launching calls in it */
	uint32_t launches_lost;  /* of these, without device work */
	uint32_t span;           /* the annotation; ROW_NONE: there is none */
	bool cut;                /* not recorded to its end */
	struct serving *serving; /* what an inference server says of its iterations (serving_steps.h); NULL = nothing */
};

struct steps {
	struct step *v;          /* in order of time, all `total` */
	unsigned n;              /* how many count */
	unsigned total;
	bool whole_trace;        /* none found: v[0] is the window, `edge` the recording before and after */
	enum steps_window_kind window;
	uint32_t repeats;        /* of WINDOW_REPEATS */
	struct {
		int64_t ns;          /* from the begin of the first step's range to that of the step: the device had work of the time before; 0 = the step begins with its range */
		int64_t waited_ns;   /* of that work the recording holds nothing: so long the step's first work waited behind its launch; 0 = it was recorded */
		int64_t longest_ns;  /* and no work later waited longer for an idle GPU */
	} before;
	struct step *edge;       /* what is no whole step, in order of time: before the first and after the last border; cut ones */
	unsigned edges;
	unsigned cut;            /* how many were not recorded to their ends: of edge; of v when there is no whole one */
	enum step_source source;
	struct str key;          /* the op or range that makes them: "ProfilerStep#", "Optimizer.step#SGD.step"; "" = none */
	uint32_t calls;          /* of the key op */
	double certainty;        /* 0..1: below 1 only where the steps were searched for or given; 0 = none found, or doubtful */
	bool doubtful;           /* of STEPS_GIVEN: the op seems to be called once a layer */
	struct str how;          /* one sentence for notes: what the steps are, or what was looked for in vain */
};

/* The steps that `ProfilerStep#N` ranges make, whatever p->steps are; without such a range one step from the first to the last op, moved and stretched as
 * others are. With a least_share above 0, the last step counts by the number of its device events alone: when it has at least this share of
 * those of the step before. *a holds them. Needs PASS_NEST and PASS_CORRELATE. */
struct steps *steps_of_profiler(const struct profile *p, double least_share, struct arena *a);

/* Whether a time of the host, or of a device, is in one of the first n steps whose number is first..last. What lies between two steps is in
 * none. O(log n). */
bool steps_have_host(const struct steps *s, unsigned n, int64_t first, int64_t last, int64_t time_ns);
bool steps_have_device(const struct steps *s, unsigned n, int64_t first, int64_t last, int64_t time_ns);

/* The times of the steps first..last, put into *out, disjoint and ascending. The caller releases *out. */
void steps_intervals(const struct profile *p, int64_t first, int64_t last, struct intervals *out);

/* step_first and step_last of --steps=outside: no step has this number. */
#define STEP_OUTSIDE INT64_MIN

/* "--steps=7..9", as the user may have written the range: an open end is left out. */
struct steps_text {
	char s[64];
};
struct steps_text steps_range_text(int64_t first, int64_t last);

/* Appends ops that repeat, for a sentence. */
void steps_put_candidates(struct profile *p, struct buf *b);

/* Makes p->steps from this key op (NULL or "" = none given), again if they were made from another one. ERR_USAGE when nothing has this
 * name, with what is near; ERR_DATA when the input has no times. What older steps gave stays valid. */
int steps_choose(struct profile *p, const char *key_op, struct err *e);

#endif
