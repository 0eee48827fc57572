/* How the ranks of a pipeline's stages spend the steps. Each moment of a rank's step is one of these:
 *   computation           its GPU ran a kernel that is not a collective; of a worker (rank_workers.h), it ran a task of computation
 *   collectives           no computation, and a collective that is not a send or receive
 *   sends and receives    neither, and a send or receive: waiting in it is not told from transfer
 *   idle                  nothing ran
 * The last two are the bubble. The step of a worker lasts from the first to the last task of all workers. Stages are those of the workers, else those that process groups tell
 * (job_peers.h). */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_PIPELINE_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_PIPELINE_H

#include "analysis/ranks/job.h"

/* Of one rank in one step. The parts add up to step_ns. */
struct job_pipeline_cell {
	uint32_t rank;               /* index into job->rank */
	uint32_t stage;
	int64_t step;                /* its number */
	int64_t step_ns, compute_ns, forward_ns, backward_ns, collective_ns, p2p_ns, idle_ns; /* forward and backward are parts of compute; 0 where not told */
	uint32_t microbatches;       /* forward computations; 0 = not told */
};

struct job_pipeline {
	struct job_pipeline_cell *cell; /* by step, stage and rank */
	uint32_t n, cap;
	uint32_t stages;             /* the largest stage of a rank, and 1 */
	bool of_workers;
	uint32_t unknown;            /* ranks of which no stage is known: in no cell */
};

/* Of the steps first..last. The caller's (job_pipeline_release). ERR_DATA where no stages are known, saying why. O(cells log cells + collectives). */
int job_pipeline_find(const struct job *j, int64_t first, int64_t last, struct job_pipeline *out, struct err *e);
void job_pipeline_release(struct job_pipeline *x);

#endif
