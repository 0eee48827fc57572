/* What a job's step would take if tasks took other times: a replay of the tasks of workers (rank_workers.h) under what they depend on.
 *
 * What a task of a worker comes behind:
 *   computation     the computation before it, forward or backward; the receive of its direction with its number; the first one also the gathering of parameters
 *   receive         the receive of its kind before it; the computation of its direction with the number before its own
 *   send            the send of its kind before it; the computation of its direction with its number
 *   the first send and the first receive of backward: also the last computation but one before the first backward
 *   any other       the other task before it; the last of the computations that had ended when it began
 * Tasks of several workers begin together, when the last of them can, and each takes its own transfer from there: a send and its receive; the reductions of embeddings of the first and the last
 * stage; gathering and reduction of all replicas of a stage; clipping of all workers.
 *
 * A task of computation takes end - start. A task of communication takes its end - the latest start of those that begin together, at least 0. In the ideal job a task takes the same as all others
 * of its name: the mean of computations, the median of communication. What a worker's host needs to launch work is in neither job. (After Lin et al., Understanding Stragglers in Large Model
 * Training Using What-if Analysis, OSDI 2025, and its program StragglerAnalysis.) */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_REPLAY_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_REPLAY_H

#include "analysis/ranks/job.h"

struct job_replay_step;

struct job_replay {
	const struct job *j;
	struct job_replay_step *step;
	uint32_t n, cap;
	uint32_t contradict;         /* steps that are left out: their tasks wait for each other in a circle */
	struct intern names;         /* of tasks */
	int64_t *ideal_ns;           /* by name */
	bool *talks;                 /* by name */
	double recorded_ns;          /* sum over the steps: from the first to the last task, as recorded */
	int64_t *end, *ns;           /* by task of the largest step: while a replay runs */
	uint32_t most_tasks;
};

/* Of the steps first..last, the caller's (job_replay_free). NULL and ERR_DATA, which says why, where the tasks of the job are not known. O(tasks log tasks). */
struct job_replay *job_replay_new(const struct job *j, int64_t first, int64_t last, struct err *e);
void job_replay_free(struct job_replay *r);

/* The sum of the steps where tasks of the ranks with rank_as_is[index into job->rank] and the names with name_as_is[id] take their own time, and all others the ideal one. NULL = all. O(tasks). */
int64_t job_replay_time(struct job_replay *r, const uint8_t *rank_as_is, const uint8_t *name_as_is);

#endif
