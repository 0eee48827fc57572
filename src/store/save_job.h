/* An .opscope file of a job: a piece of bytes for each recording (query/job_read.h makes them).
 *
 *   application_id   "OPSJ"; user_version: SAVE_JOB_VERSION
 *   meta             key, value: opscope, input
 *   job_piece        id (from 1, in the order of the job), recording (its path), rank, checksum (XXH3 of data), data
 *
 * Life cycle: save_job_begin, save_job_piece..., then save_commit or save_abort. The file appears under its name only in save_commit. */
#ifndef OPSCOPE_STORE_SAVE_JOB_H
#define OPSCOPE_STORE_SAVE_JOB_H

#include "store/save.h"

enum {
	SAVE_JOB_APPLICATION_ID = 0x4f50534a, /* "OPSJ" */
	SAVE_JOB_VERSION = 2,
};
#define SAVE_JOB_PIECES "job_piece"

/* `input`: what the job was read from. NULL and *e on failure. */
struct save *save_job_begin(const char *path, mode_t mode, struct str input, struct err *e);
int save_job_piece(struct save *s, struct str recording, int64_t rank, struct str bytes, struct err *e);

#endif
