/* A job kept in one file. The file holds what job_read.h reads of each recording, findings included: reports of all ranks together, and advice, answer from it what they answer
 * from the recordings. */
#ifndef OPSCOPE_QUERY_JOB_FILE_H
#define OPSCOPE_QUERY_JOB_FILE_H

#include "query/job_report.h"

#include <sys/types.h>

/* Reads all recordings and writes the file, which appears when it is complete. `mode`: the most permissions that it may have; `input`: what the job is called. Of a
 * damaged recording the file keeps the reason, which notes then state; `warn` (NULL = nobody) is told, too. ERR_IO, ERR_NOMEM, and no file, where the disk fails or memory runs out. ERR_DATA, and no file, where none can be read. */
int job_file_save(const struct job_inputs *in, const char *path, mode_t mode, struct str input, void (*warn)(const char *recording, const struct err *why), struct err *e);

/* Only reads them, each once and as job_file_save does, and forgets what was read: for a process that reads them for another one. */
void job_file_read_all(const struct job_inputs *in);

struct job_file;
/* NULL and *e where it is not such a file, is damaged, or cannot be read. */
struct job_file *job_file_open(const char *path, struct err *e);
/* Only the recordings whose rank is wanted, from now on. Returns how many these are. */
unsigned job_file_choose(struct job_file *f, bool (*wants)(const void *context, int64_t rank), const void *context);
/* Its recordings, which can be read and not opened. They live as long as *f. */
struct job_inputs job_file_inputs(struct job_file *f);
void job_file_close(struct job_file *f);

#endif
