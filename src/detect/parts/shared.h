/* What several detectors look at, made when the first detector asks and freed when all have run, whatever thread they run on; and sentences that all detectors say in the same way. */
#ifndef OPSCOPE_DETECT_PARTS_SHARED_H
#define OPSCOPE_DETECT_PARTS_SHARED_H

#include "analysis/costs/costs.h"
#include "analysis/names/stacks.h"
#include "analysis/steps/steps.h"
#include "analysis/time/gpus.h"
#include "analysis/time/interval.h"
#include "analysis/tree/direction.h"
#include "analysis/tree/layers.h"
#include "base/buf.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "detect/parts/gaps.h"

/* When one GPU works in the window. */
struct gpu_time {
	int32_t device;          /* ordinal; INT32_MIN = not known */
	struct intervals busy;   /* any work of the GPU */
	struct intervals idle;   /* the window - busy */
	int64_t idle_ns;         /* length of idle */
	int64_t compute_ns;      /* time with work that is not communication: waiting for other GPUs is not work */
};

/* The time that findings are of: the steps that count; where there are none, the window that stands for them (enum steps_window_kind), as if it were
 * 1 step. And when devices work in it. */
struct step_time {
	enum steps_window_kind kind;
	struct intervals all;    /* the steps */
	struct gpu_time *gpu;    /* each GPU of the profile by itself, in order of ordinal */
	unsigned gpus;
	unsigned lead;           /* index of the GPU that findings about idle time look at: the GPU that is idle longest, among those with at least
	                          * four fifths of the computing time of the GPU that computes most */
	struct intervals busy;   /* of the lead GPU; owned by gpu[lead] */
	struct intervals idle;   /* the same */
	int64_t ns, idle_ns;     /* lengths of `all` and of `idle` */
	unsigned n;              /* steps; 1 where the window stands for them */
	uint32_t main_track;     /* the thread that runs them; ROW_NONE = not known */
	const char *time;        /* for "12 % of the ...": "step time", "time from the first to the last device work" */
	const char *per;         /* for the start of a list: "Per step", "In this time" */
	const char *a_step;      /* behind a count: " a step", "" */
};

/* Takes over p->ops_layers and p->ops_stacks. */
struct shared *shared_new(struct profile *p);
void shared_free(struct shared *s);

/* These need PASS_NEST, PASS_CORRELATE and PASS_STEPS; all are owned by f->shared.
 * Whether the input has what detectors of this kind look at. If not, the reason goes to f->missing. */
bool shared_has(struct findings *f, enum detector_where where);
/* The time to look at; without device work, only steps count. Never NULL; n = 0 where there is nothing to look at. */
const struct step_time *shared_steps(struct findings *f);
/* The thread of the steps' annotations; without annotations, the thread that launches most; ROW_NONE where none launches. Needs PASS_CORRELATE and PASS_STEPS. O(device work). */
uint32_t steps_main_track(const struct profile *p);
/* The step that a moment of the host is in; ROW_NONE. */
uint32_t shared_step_at(const struct steps *s, int64_t time_ns);
/* Whether most events were taken out of the recording (analysis/time/thinned.h): times without device work are then none of the run. */
bool shared_is_thinned(struct findings *f);
extern const char shared_thinned_why[];
const struct gaps *shared_gaps(struct findings *f); /* where shared_has(f, DETECT_WINDOW) */
const struct stacks *shared_stacks(struct findings *f);
const struct costs *shared_costs(struct findings *f);
const struct layers *shared_layers(struct findings *f);
const struct directions *shared_directions(struct findings *f);
/* Whether a kernel runs beside another one of its GPU: kernels_beside (detect/parts/kernel_grids.h). */
const uint8_t *shared_beside(struct findings *f);

/* What the detectors of one expert system share: the detectors of two systems never run together, and those of one on one thread. */
struct shared_experts {
	void *state;              /* NULL = not made yet */
	void (*release)(void *state);
};
struct shared_experts *shared_experts(struct findings *f);

/* What the detectors of attention share (detect/parts/attention_chains.h). */
struct attentions;
const struct attentions *shared_attentions(struct findings *f);

/* Whether the moment is in the steps. */
bool step_time_has(const struct step_time *w, int64_t time_ns);
/* "The GPU", or of several "GPU 1", the lead one. */
void put_lead(const struct step_time *w, struct buf *b);
/* Of several GPUs, " (GPU 0 17.2 ms, GPU 1 8.2 ms; mean 12.7 ms)": their idle times per step; at most the first eight by name. Nothing of one. */
void put_idle_of_gpus(const struct step_time *w, struct buf *b);
/* The idle time of the lead GPU within [start, end), ns. */
int64_t step_time_idle_within(const struct step_time *w, int64_t start, int64_t end);
/* `ns` in percent of the time of all steps. */
double step_time_pct(const struct step_time *w, int64_t ns);

/* Sets what the finding rests on: `events`, which took `ns` of the steps' time. */
void finding_rests_on(struct finding *x, const struct step_time *w, uint64_t events, int64_t ns);
/* The same with a share that is not of the steps' time: `pct`. */
void finding_share(struct finding *x, uint64_t events, int64_t ns, double pct);
/* Sets the gain: at most `ns` over all steps, and no more than the steps last; `how` says how the bound is computed. */
void finding_gain(struct finding *x, const struct step_time *w, int64_t ns, const char *how);
/* Says which of the window's time the finding is about: what would be shorter, or not be there, without its cause. Findings about the same time are
 * told as one (detect/merge.h). *when, normalised, is copied. A finding that does not say is taken to be about all of the window. */
void finding_covers(struct finding *x, const struct intervals *when);
/* Does all three (rests on, gain, covers), where the time that the events took is the bound of the gain. */
void finding_measured(struct finding *x, const struct step_time *w, uint64_t events, int64_t ns, const struct intervals *when, const char *how);
/* finding_covers with times of device work in any order: normalises *when, cuts it at the window's borders, and releases it. */
void finding_covers_work(struct finding *x, const struct step_time *w, struct intervals *when);
/* finding_covers with times that stay the caller's: *when is normalised, and need not be cut at the window's borders. */
void finding_covers_within(struct finding *x, const struct step_time *w, const struct intervals *when);
/* Sets where to look: [from, to), unless the finding already names a longer time. */
void finding_looks_at(struct finding *x, int64_t from_ns, int64_t to_ns);
/* finding_looks_at with the range of *t that has most time. */
void finding_looks_at_most(struct finding *x, const struct profile *p, const struct places *t);
/* The text of *b, copied into f->arena; releases *b. */
struct str finding_text(struct findings *f, struct buf *b);
/* Sets the evidence: the text of *b, then the places; releases *b. The other parameters are those of places_text. */
void finding_evidence(struct finding *x, struct findings *f, struct buf *b, const struct places *t, unsigned max, unsigned steps, bool counts);

#endif
