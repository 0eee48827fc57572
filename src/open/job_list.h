/* Whether traces that were found (input/discover.h) are the ranks of one job. */
#ifndef OPSCOPE_OPEN_JOB_LIST_H
#define OPSCOPE_OPEN_JOB_LIST_H

#include "base/table.h"
#include "input/discover.h"

/* Several traces of one run whose ranks are known for certain and differ; of a rank there may be several spans. If so, the list is sorted by rank, each trace has its rank, and
 * empty files are taken out. Reads the heads of the files. */
bool job_list_is(struct trace_list *l);

/* Warns in *t of files among the ranks that hold nothing, or are no recordings. */
void job_list_warn(const struct trace_list *l, struct table *t);

#endif
