/* What a job's step would take if tasks took other times: a replay of the tasks of workers (rank_workers.h) under what they depend on.
 *
 * Of one worker: forward and backward run one after the other, in the order that was recorded; so do tasks of each kind of send and receive, and all others. A receive comes before the
 * computation of its number, and behind the one before that; a send behind the computation of its number. The first backward's send and receive come behind the forward before the last one
 * before it. Other tasks come behind the computations that had ended when they began; computation that began later, behind the gathering of parameters.
 * Of several: a send and its receive; the reduction of embeddings of first and last stage; gathering and reduction of all replicas of a stage; clipping, of all workers. These begin where
 * the last of them does, and each takes its own transfer from there.
 *
 * A task of computation takes end - start, another one end - the latest start of those it waits for, at least 0. In the ideal job each takes the same as all others of its name: the mean of
 * computations, the median of communication. Nothing is late for other reasons: what a worker's host needs to launch work is in neither. (After ByteDance's StragglerAnalysis: Lin et al.,
 * Understanding Stragglers in Large Model Training Using What-if Analysis, OSDI 2025.) */
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
