/* The distributed job that this process is a part of, from what its launcher put into the environment. */
#ifndef OPSCOPE_RECORD_JOB_H
#define OPSCOPE_RECORD_JOB_H

#include "base/str.h"

#include <stdint.h>

struct record_job {
	char id[200];      /* the same in all ranks of the job, and in no other job; "" = no job, or it cannot be told from others */
	char member[80];   /* of the job: different in each; "rank 3" */
	bool has_rank;     /* one of several ranks, each of which is recorded by itself */
	int64_t rank, size;
};

/* OPSCOPE_JOB names the job where the launcher does not. */
void record_job(struct record_job *j);

#endif
