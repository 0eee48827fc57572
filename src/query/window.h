/* --steps=A..B as times. A host event counts when it starts inside the annotation of one of the steps. Device work counts with the op or call that launched
 * it; where none is known, when it starts inside one of the steps as the device sees them, so that work launched before the recording belongs to no step. An
 * event that starts between two steps is in neither: A..B is the sum of its steps. The numbers of a predecessor may be those of its own iterations
 * (query/predecessor.h). */
#ifndef OPSCOPE_QUERY_WINDOW_H
#define OPSCOPE_QUERY_WINDOW_H

#include "analysis/steps/slice.h"
#include "query/report.h"

struct window {
	bool all;
	int64_t start_ns, end_ns;               /* on the host */
	int64_t device_start_ns, device_end_ns; /* moved and stretched to the device work */
	unsigned steps;           /* how many steps the window covers */
	struct step_window in;    /* the times of the steps alone, without those between them; with args->outside, the times outside the steps */
};

/* ERR_DATA when no step has a number in the range. Needs PASS_STEPS if args->has_steps. */
int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e);
struct window window_from(const struct step_window *in);

static inline bool window_has(const struct window *w, int64_t time_ns)
{
	return w->all || step_window_has_host(&w->in, time_ns);
}

bool window_has_gpu(const struct window *w, const struct profile *p, uint32_t gpu_op);

#endif
