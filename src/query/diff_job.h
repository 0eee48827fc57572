/* A job as one side of a comparison: its ranks, read one after the other, become one side in which waiting is told from transfer (query/diff_wait.h). */
#ifndef OPSCOPE_QUERY_DIFF_JOB_H
#define OPSCOPE_QUERY_DIFF_JOB_H

#include "query/diff_side.h"
#include "query/job_report.h"

/* The side of all recordings of a job, of the steps that *args choose. Reads them in order, each once, and holds one at a time. The caller's (diff_side_free). NULL and *e where one cannot be
 * read, or they do not fit each other (diff_side_join). */
struct diff_side *diff_job_read(const struct job_inputs *in, const struct report_args *args, struct err *e);

/* The side of one recording, in which several ranks may have been recorded: else it is diff_side_new. */
struct diff_side *diff_job_of_recording(struct profile *p, const struct report_args *args, struct err *e);

#endif
