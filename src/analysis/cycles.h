/* The spans of a repeated schedule (torch.profiler.schedule(repeat=2)) within one recording: each is a run of ProfilerStep#N whose
 * numbers follow on each other; a jump begins the next one. Needs no pass. O(n + steps log steps). */
#ifndef OPSCOPE_ANALYSIS_CYCLES_H
#define OPSCOPE_ANALYSIS_CYCLES_H

#include "store/profile.h"

struct cycle {
	int64_t start_ns, end_ns;    /* of its steps */
	int64_t step_first, step_last;
};

struct cycles {
	struct cycle *v;             /* in order of time */
	uint32_t n;                  /* 0 = no steps recorded; 1 = one span */
};

void cycles_find(const struct profile *p, struct cycles *c);
void cycles_release(struct cycles *c);

/* Which one a moment belongs to: the last that began by then; the first for what is before all. 0 when there are none. */
uint32_t cycle_at(const struct cycles *c, int64_t time_ns);

#endif
