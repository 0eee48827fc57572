/* Reading an .opscope file of a job (store/save_job.h). The file may come from anyone: a piece is handed out only if its checksum is right, and whoever
 * takes it checks what it says (query/job_read.h). */
#ifndef OPSCOPE_STORE_LOAD_JOB_H
#define OPSCOPE_STORE_LOAD_JOB_H

#include "base/err.h"
#include "base/str.h"

/* True when these first bytes of a file are those of a job's file, whatever its version. */
bool load_job_sniff(struct str head);
/* The same of a file; false where it is no regular file, or cannot be read. */
bool load_job_is(const char *path);
/* The same: 1 or 0; -1, ERR_IO, where the file cannot be read. */
int load_job_look(const char *path, struct err *e);

struct load_job_piece {
	const char *recording; /* its path when it was read */
	int64_t rank;
};

struct load_job {
	struct load_job_piece *piece;
	unsigned n;            /* at least 1 */
	struct load_job_file *file;
};

/* The list of pieces. NULL and *e: ERR_FORMAT where it is damaged or of a newer version, ERR_IO, ERR_NOMEM. */
struct load_job *load_job_open(const char *path, struct err *e);
/* The bytes of piece i, valid until the next call. Fast where i ascends. -1 with ERR_FORMAT where they are damaged. */
int load_job_bytes(struct load_job *l, unsigned i, struct str *bytes, struct err *e);
void load_job_close(struct load_job *l);

#endif
