/* Reports of a job: one run on several ranks, each of which has a recording of its own. */
#ifndef OPSCOPE_QUERY_JOB_REPORT_H
#define OPSCOPE_QUERY_JOB_REPORT_H

#include "query/report.h"

struct job_ask;
struct job_read;

/* The recordings of a job, which are opened one after the other, or on several threads (job_each.h): memory holds as many at a time. */
struct job_inputs {
	unsigned n;
	/* Recording i, the caller's (profile_free). NULL and *e: it cannot be read. */
	struct profile *(*open)(void *context, unsigned i, struct err *e);
	/* The same on any of `threads` threads, and without a word to the user: what there is to say of recording i is kept for `opened`, which is called in order of i
	 * on the thread that asked. NULL = one after the other. */
	struct profile *(*open_quietly)(void *context, unsigned i, struct err *e);
	void (*opened)(void *context, unsigned i);
	unsigned threads;
	const char *(*path)(void *context, unsigned i);
	int64_t (*rank)(void *context, unsigned i); /* where the recording does not state it */
	/* What recording i gives (query/job_read.h), in place of opening it here; NULL = it is opened. */
	struct job_read *(*read)(void *context, unsigned i, const struct job_ask *ask);
	const char *kept;        /* the file that keeps the ranks, where the recordings themselves are not at hand; NULL = they are */
	void *context;
};

/* A report of a job. With run_job: of all ranks together. Without, the report is asked of each rank, and the tables become one: with `each`, rows of all
 * ranks, told apart by a column in front; else a row for each key, with the mean of each number over the ranks that have the row, and of
 * the first duration also the least and the most and the rank that has it. A recording that cannot be read is named in a note. ERR_DATA where none can. */
int job_report_run(const struct report *r, const struct job_inputs *in, bool each, const struct report_args *args, struct table *out, struct err *e);

struct job;
/* A report with run_job of a job that is there already. Steps are chosen where the report takes them. */
int job_report_of(const struct report *r, const struct job *j, const struct report_args *args, struct table *out, struct err *e);

#endif
