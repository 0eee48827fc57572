/* The spans of a repeated schedule (torch.profiler.schedule(repeat=2)) within one recording. In each process a run of ProfilerStep#N whose
 * numbers follow on each other is one; a jump begins the next one. Runs of several processes are one cycle when they have a time and a
 * step number in common. Needs no pass. O(n + steps log steps). */
#ifndef OPSCOPE_ANALYSIS_STEPS_CYCLES_H
#define OPSCOPE_ANALYSIS_STEPS_CYCLES_H

#include "store/profile.h"

struct cycle {
	int64_t start_ns, end_ns;    /* of its steps, in all processes */
	int64_t step_first, step_last;
};

struct cycle_run {
	uint32_t process;            /* string id: the pid as written */
	uint32_t cycle;
	int64_t start_ns;
};

struct cycles {
	struct cycle *v;             /* in order of time */
	uint32_t n;                  /* 0 = no steps recorded; 1 = one span */
	struct cycle_run *run;       /* by process, in order of time */
	uint32_t n_runs;
};

void cycles_find(const struct profile *p, struct cycles *c);
void cycles_release(struct cycles *c);

/* Which one a moment of a track belongs to: the last that began by then in its process, in any where its process has no steps; the
 * first for what is before all. 0 when there are none. */
uint32_t cycle_at(const struct cycles *c, const struct profile *p, uint32_t track, int64_t time_ns);

#endif
