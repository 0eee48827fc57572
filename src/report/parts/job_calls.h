/* What reports about a job's collectives share: which of them count, and sums of what they state. */
#ifndef OPSCOPE_REPORT_PARTS_JOB_CALLS_H
#define OPSCOPE_REPORT_PARTS_JOB_CALLS_H

#include "analysis/ranks/job.h"
#include "query/report.h"

/* Sums of bytes that a recording states, which may be anything: the largest number where they do not fit. */
static inline int64_t job_sum(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Whether one of its parts began in a step that counts. */
bool job_is_in_steps(const struct job *j, const struct job_instance *x, const struct report_args *args);

#endif
