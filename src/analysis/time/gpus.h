/* The GPUs that worked, numbered from 0 in order of their ordinals. Figures are of each GPU by itself first: a union over GPUs lets the work of one
 * hide the idle time of another. */
#ifndef OPSCOPE_ANALYSIS_TIME_GPUS_H
#define OPSCOPE_ANALYSIS_TIME_GPUS_H

#include "store/profile.h"

/* No machine has more; of hostile input, what is beyond is of no known GPU. */
enum { GPUS_MOST = 128 };
#define GPUS_NONE UINT32_MAX

struct gpus {
	int32_t *device;         /* ordinals, ascending; INT32_MIN = the input names no GPU at all */
	uint32_t n;
	uint32_t *of_launch;     /* row of profile->launch -> index; GPUS_NONE: the input does not tell which of several GPUs. Where there is only one,
	                          * such work is taken for its */
};

/* The devices of all device work of *p. Release with gpus_release. O(launches + device work). */
void gpus_find(const struct profile *p, struct gpus *out);
void gpus_release(struct gpus *g);

/* Keeps this one alone: all other work is then of no GPU. False, and nothing changes: it did not work. */
bool gpus_keep(struct gpus *g, const struct profile *p, int64_t ordinal);

/* Index of the GPU that device work `row` ran on; GPUS_NONE. */
static inline uint32_t gpus_of(const struct gpus *g, const struct profile *p, uint32_t row)
{
	return g->of_launch[p->gpu_op.launch[row]];
}

#endif
