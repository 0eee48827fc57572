/* Which rank of a communicator each GPU of a recording is: NCCL's functions that make or destroy a communicator state which rank of how many asks, and on which
 * GPU. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_COMMS_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_COMMS_H

#include "analysis/time/gpus.h"

/* number[i] of each GPU i with talks[i], and how many ranks there are, by the largest communicator that gives each of these GPUs one rank of its own. False: there is
 * none. `number` has room for all GPUs. O(n log n). */
bool rank_comms_numbers(const struct profile *p, const struct gpus *gpus, const uint8_t *talks, int64_t *number, int64_t *world);

#endif
