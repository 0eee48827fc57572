/* What the GPUs did in each step, and between one step and the next. */
#ifndef OPSCOPE_ANALYSIS_TIME_STEP_GPUS_H
#define OPSCOPE_ANALYSIS_TIME_STEP_GPUS_H

#include "store/profile.h"

/* Of a piece of time. Sums over the GPUs: each GPU by itself. */
struct step_gpus_use {
	int64_t ns;              /* its length */
	int64_t busy_ns;         /* device work ran, copies and sets included */
	int64_t host_ns;         /* nothing ran, and the call that launched the next work had not begun: the GPU waited for the host */
	int64_t queued_ns;       /* nothing ran, and that call had begun: launch delay, waits for other streams, pauses in a replayed graph */
	int64_t unknown_ns;      /* nothing ran, and the call that launched the next work was not recorded */
	uint64_t kernels;        /* that begin in it; the replay of a whole graph is none */
	uint64_t graphs;         /* such replays */
};

struct step_gpus {
	unsigned n;              /* steps */
	uint32_t gpus;           /* that worked; 0 = none */
	unsigned *step;          /* of them, which of p->steps->v */
	struct step_gpus_use *use; /* use[2 * i]: step i of the n; use[2 * i + 1]: from its end to the next step's start */
};

/* Of the steps with the numbers first..last. Needs PASS_STEPS. Release with step_gpus_release. O(device work x log). */
void step_gpus_find(const struct profile *p, int64_t first, int64_t last, struct step_gpus *out);
void step_gpus_release(struct step_gpus *x);

#endif
