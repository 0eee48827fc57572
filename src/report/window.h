/* --steps=A..B as a window of time: an event counts when it starts inside. */
#ifndef OPSCOPE_REPORT_WINDOW_H
#define OPSCOPE_REPORT_WINDOW_H

#include "report/report.h"

struct window {
	bool all;
	int64_t start_ns, end_ns; /* on the host; device work counts with its op */
	unsigned steps;           /* how many steps it covers */
};

/* ERR_DATA when no step has a number in the range. Needs PASS_STEPS if args->has_steps. */
int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e);

static inline bool window_has(const struct window *w, int64_t time_ns)
{
	return w->all || (time_ns >= w->start_ns && time_ns < w->end_ns);
}

/* When the host began what led to this device work: its op, else its call, else itself. */
int64_t window_gpu_time(const struct profile *p, uint32_t gpu_op);

#endif
