/* The distributed job that a recording is one rank of, and which of the GPUs that it lists are this rank's. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_PLACE_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_PLACE_H

#include "base/buf.h"
#include "store/profile.h"

struct rank_place {
	bool is_rank;            /* the input names a rank of a job that is larger than this one */
	int64_t rank;
	int64_t world;           /* ranks in all; 0 = not stated */
	bool is_merged;          /* the input is of several ranks, and the number of a GPU is that of its rank */
};
/* By what torch.profiler writes as distributedInfo, and `export chrome` of a job as opscope_job. */
struct rank_place rank_place_of(const struct profile *p);

/* A rank's trace lists all GPUs that its process sees, which are those of the machine, and has work on its own alone: listed ones without
 * work count as those of other ranks. Sets foreign[row of p->device] (zeroed by the caller) and returns how many; none where the input names no
 * rank, or no listed GPU has work. O(n). */
uint32_t rank_foreign_gpus(const struct profile *p, uint8_t *foreign);
/* How many of the GPUs listed are not foreign. */
uint32_t rank_own_gpus(const struct profile *p);
/* A sentence that names the foreign GPUs; nothing where there is none. */
void rank_put_foreign_gpus(const struct profile *p, struct buf *b);

#endif
