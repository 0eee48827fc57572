/* Timelines of workers: one Chrome trace of a whole job, in which each thread is a stream of a worker. The process's number is the worker's data-parallel rank, the thread's name says
 * "PP rank 1, TP rank 0, compute", and each event is a task (RANK_TASKS) with the arguments step and seq_id. A step of a worker has some tasks in place of thousands of kernels.
 * Traces that StragglerAnalysis reads are such timelines. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_WORKERS_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_WORKERS_H

#include "analysis/ranks/rank.h"

/* How many workers the profile is of; 0 = it is not a timeline of workers. */
unsigned rank_workers_count(const struct profile *p);
/* Number i of these, in order of data-parallel, pipeline and tensor-parallel rank: the caller's (rank_free). Its steps have numbers and times; it has no collectives, and what its GPU did
 * is not known. O(tracks log tracks + its tasks log tasks). */
struct rank *rank_worker_new(const struct profile *p, unsigned i);

#endif
