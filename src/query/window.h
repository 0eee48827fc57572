/* --steps=A..B as times: host events count when they start inside one of the steps' annotations; device work counts with
 * the op or call that launched it, and where none is known, when it starts inside one of the steps as the device sees them, so
 * that what was launched before the recording belongs to no step. What starts between two steps is in neither: A..B is the sum of its steps. The
 * numbers of a predecessor may be those of its own iterations (query/predecessor.h). */
#ifndef OPSCOPE_QUERY_WINDOW_H
#define OPSCOPE_QUERY_WINDOW_H

#include "analysis/steps/slice.h"
#include "query/report.h"

struct window {
	bool all;
	int64_t start_ns, end_ns;               /* on the host */
	int64_t device_start_ns, device_end_ns; /* moved and stretched to the device work */
	unsigned steps;           /* how many steps it covers */
	struct step_window in;    /* the same times, without those between steps; with args->outside, what is not in them */
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
