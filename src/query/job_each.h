/* Goes over the recordings of a job on several threads: each becomes what is kept of it at once, so that memory holds as many recordings as there are threads. */
#ifndef OPSCOPE_QUERY_JOB_EACH_H
#define OPSCOPE_QUERY_JOB_EACH_H

#include "query/job_report.h"

struct job_each {
	/* What is kept of recording i, which points into nothing that `in` opened. On any thread, for several recordings at a time: *context is only read. */
	void *(*take)(const void *context, const struct job_inputs *in, unsigned i);
	/* Gets what `take` made: on the calling thread, in order of i, so that no result depends on the number of threads. */
	void (*put)(void *context, unsigned i, void *made);
	void *context;
};
void job_each(const struct job_inputs *in, const struct job_each *each);

#endif
