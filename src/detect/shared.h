/* What several detectors look at, made when the first asks and freed when all have run; and what they all have to say in the same way. */
#ifndef OPSCOPE_DETECT_SHARED_H
#define OPSCOPE_DETECT_SHARED_H

#include "analysis/costs.h"
#include "analysis/direction.h"
#include "analysis/interval.h"
#include "analysis/stacks.h"
#include "analysis/steps.h"
#include "base/buf.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "detect/gaps.h"

/* The steps that count, and when devices work in them. */
struct step_time {
	struct intervals all;    /* the steps */
	struct intervals busy;   /* within them: some device of the profile has work */
	struct intervals idle;   /* all - busy */
	int64_t ns, idle_ns;     /* lengths of all, idle */
	unsigned n;              /* steps */
	uint32_t main_track;     /* the thread that runs them; ROW_NONE = not known */
};

struct shared *shared_new(const struct profile *p);
void shared_free(struct shared *s);

/* These need PASS_NEST, PASS_CORRELATE and PASS_STEPS; all are owned by f->shared.
 * NULL, and the reason goes to f->missing for `d`: no device work, no steps (start-up is then not told from steady work), or no times. */
const struct step_time *shared_window(struct findings *f, const struct detector *d);
/* The steps alone, also without device work. Never NULL; n = 0 where there are none. */
const struct step_time *shared_steps(struct findings *f);
const struct gaps *shared_gaps(struct findings *f); /* of shared_window, which must not be NULL */
const struct stacks *shared_stacks(struct findings *f);
const struct costs *shared_costs(struct findings *f);
const struct directions *shared_directions(struct findings *f);
/* What a kernel is by its name (string id), asked once per name. */
struct kernel_info shared_kernel(struct findings *f, uint32_t name);
/* Whether it uses Tensor Cores; a name on the plugin's list counts as yes. */
enum tri shared_tensor_core(struct findings *f, uint32_t name);

/* Where DLProf's detectors keep what they share (detect/dlprof.h). */
struct dlprof_run;
struct dlprof_run **shared_dlprof(struct findings *f);

/* The same for torch's (detect/torch_tidy.h). */
struct tidy;
struct tidy **shared_tidy(struct findings *f);

/* Whether a moment is in the steps. */
bool step_time_has(const struct step_time *w, int64_t time_ns);
/* How much of [start, end) is idle time of the steps. */
int64_t step_time_idle_within(const struct step_time *w, int64_t start, int64_t end);
/* Percent of the time of all steps. */
double step_time_pct(const struct step_time *w, int64_t ns);

/* Says on what the finding rests: `events`, which took `ns` of the steps' time. */
void finding_rests_on(struct finding *x, const struct step_time *w, uint64_t events, int64_t ns);
/* At most `ns` over all steps, but no more than these last; `how` says what it is. */
void finding_gain(struct finding *x, const struct step_time *w, int64_t ns, const char *how);
/* Says where to look: at [from, to), if that is longer than where it said before. */
void finding_looks_at(struct finding *x, int64_t from_ns, int64_t to_ns);
/* The same of the range of *t with most time. */
void finding_looks_at_most(struct finding *x, const struct profile *p, const struct places *t);
/* Takes the text of *b, and releases it. */
struct str finding_text(struct findings *f, struct buf *b);

#endif
