/* The side of a comparison that a timeline of workers is (analysis/ranks/rank_workers.h): tasks of a job's workers, without device work.
 *
 * A step goes from the first to the last of its tasks on any worker, as the job's step does. Each moment of it belongs, on each worker, to
 *   compute   the tasks of computation that run then, by name; several share the moment equally
 *   comm      the tasks of communication that run then, and none of computation
 *   idle      the task that begins next; after the last one, the end of the step
 * The workers stand in place of GPUs: numbers are means over them. */
#ifndef OPSCOPE_QUERY_DIFF_WORKERS_H
#define OPSCOPE_QUERY_DIFF_WORKERS_H

#include "query/diff_side.h"

/* Fills the steps and parts of a side, which is empty; rank_workers_count(p) is not 0. -1 and *e as diff_side_new. O(tasks log tasks) where few tasks of a worker run at once. */
int diff_workers_take(struct diff_side *s, const struct profile *p, const struct report_args *args, struct err *e);

#endif
