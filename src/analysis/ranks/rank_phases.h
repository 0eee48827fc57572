/* The phases of a rank's steps. Each moment of a step belongs to one phase, by the first of these that holds on the rank's GPU:
 *   a kernel or memset ran      forward, backward, optimizer or other: its direction (analysis/tree/direction.h)
 *   a collective ran            the communication of its direction; where the GPU runs no collectives, those of the host count
 *   a copy ran                  its direction
 *   nothing ran                 data loading, where the host was in a data loader; else the phase of the device work that came next in the step; behind the last work, other
 * A recording without device work has the phases of its host: data loading first, then optimizer, backward, forward. Its communication is part of the phase that waits for it. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_PHASES_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_PHASES_H

#include "analysis/time/gpus.h"
#include "analysis/time/interval.h"
#include "store/profile.h"

/* In the order of a step. */
#define RANK_PHASES(X)                              \
	X(DATA, "data loading")                     \
	X(FORWARD, "forward")                       \
	X(FORWARD_COMM, "forward communication")    \
	X(BACKWARD, "backward")                     \
	X(BACKWARD_COMM, "backward communication")  \
	X(OPTIMIZER, "optimizer")                   \
	X(OPTIMIZER_COMM, "optimizer communication") \
	X(OTHER, "other")                           \
	X(OTHER_COMM, "other communication")

enum rank_phase {
#define RANK_PHASE_ID_(id, name) RANK_PHASE_##id,
	RANK_PHASES(RANK_PHASE_ID_)
	RANK_N_PHASES
};
extern const char *const rank_phase_name[RANK_N_PHASES];

/* The phases without their communication, in the same order: where a rank loses time of its own. */
enum rank_spent { RANK_SPENT_DATA, RANK_SPENT_FORWARD, RANK_SPENT_BACKWARD, RANK_SPENT_OPTIMIZER, RANK_SPENT_OTHER, RANK_N_SPENT };
extern const enum rank_phase rank_spent_phase[RANK_N_SPENT];

struct rank_phases {
	struct intervals v[RANK_N_PHASES]; /* disjoint, of the profile's times; between the first and the last step's borders they leave no gap */
};

/* Of the GPU number `gpu` of *gpus; GPUS_NONE = of all. Needs PASS_NEST, PASS_CORRELATE and PASS_STEPS. O(n log n). */
void rank_phases_find(const struct profile *p, const struct gpus *gpus, uint32_t gpu, struct rank_phases *out);
void rank_phases_release(struct rank_phases *x);
/* Adds the time of each phase in [start, end) to ns. */
void rank_phases_add(const struct rank_phases *x, int64_t start, int64_t end, int64_t ns[RANK_N_PHASES]);

#endif
