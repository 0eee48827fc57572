/* What can go of device work, GPU by GPU. GPUs work beside each other: what several of them could save at the same time makes a step shorter once. So what a
 * finding gains, and which time it is about, are those of the GPU that could save most; what it rests on may be of all of them. */
#ifndef OPSCOPE_DETECT_PARTS_GPU_MOST_H
#define OPSCOPE_DETECT_PARTS_GPU_MOST_H

#include "detect/parts/shared.h"

struct gpu_saving {
	int64_t ns;              /* what can go */
	struct intervals when;   /* of the work it can go of */
};

struct gpu_most {
	struct gpus gpus;
	struct gpu_saving *of;   /* by index of the GPU */
	uint32_t most;           /* index of the GPU that could save most; of equal ones the one with most such work, then the first */
	int64_t ns;              /* what that one could save; gpu_most_choose */
};

/* Release with gpu_most_release. O(launches + device work). */
void gpu_most_init(struct gpu_most *m, const struct profile *p);
void gpu_most_release(struct gpu_most *m);

/* Device work `row`, of whose time `ns` can go. */
void gpu_most_add(struct gpu_most *m, const struct profile *p, uint32_t row, int64_t ns);
/* The same of a time in which the GPU of `row` does such work. */
void gpu_most_add_range(struct gpu_most *m, const struct profile *p, uint32_t row, int64_t start_ns, int64_t end_ns, int64_t ns);
/* When all is added: sets most and ns. What a GPU can save is no more than the time, in the steps, in which it does such work on any stream. */
void gpu_most_choose(struct gpu_most *m, const struct step_time *w);

/* Of the GPU chosen: which time the finding is about. */
void finding_covers_most(struct finding *x, const struct step_time *w, const struct gpu_most *m);
/* The same, and what it gains; `how` says what that is, and of several GPUs it is said which one it is of. */
void finding_gains_most(struct finding *x, struct findings *f, const struct step_time *w, const struct gpu_most *m, const char *how);

#endif
