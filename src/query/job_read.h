/* What one recording gives to an answer about a job: its ranks, and for advice its findings. It can become bytes, for a file or for another
 * process. */
#ifndef OPSCOPE_QUERY_JOB_READ_H
#define OPSCOPE_QUERY_JOB_READ_H

#include "detect/detect.h"
#include "query/diff_side.h"
#include "query/job_report.h"

/* What is wanted of a recording. */
struct job_ask {
	const struct report_args *args;
	unsigned needs;          /* enum analysis_pass bits, besides those that ranks need */
	bool part;               /* only what lies in the steps of args */
	bool findings;
	bool side;               /* for a comparison: what the steps of args are made of */
};

struct job_read {
	struct err failed;       /* ERR_NONE: it was read */
	int64_t number;          /* of the rank: as the recording states, else as the list of recordings does */
	int64_t world;           /* ranks of the job, as the recording states; 0 = it does not */
	struct job *ranks;       /* job_finish was not called; NULL where the recording was not read */
	struct findings findings; /* of job_ask.findings. Texts are its own */
	struct diff_side *side;  /* of job_ask.side; NULL where the recording cannot be compared, and side_failed says why */
	struct err side_failed;
};

/* Reads recording i of those that in->open opens. Never NULL; the caller's (job_read_free). */
struct job_read *job_read_here(const struct job_inputs *in, unsigned i, const struct job_ask *ask);
/* The same by in->read, where there is one. */
struct job_read *job_read_of(const struct job_inputs *in, unsigned i, const struct job_ask *ask);
void job_read_free(struct job_read *x);

/* Hands its ranks over to a job. */
void job_read_take_ranks(struct job_read *x, struct job *to);

/* As bytes: appends them. */
void job_read_pack(const struct job_read *x, struct buf *out);
/* From all of the bytes. NULL, and ERR_FORMAT, where they are damaged or of another version. */
struct job_read *job_read_unpack(struct str bytes, struct err *e);

#endif
