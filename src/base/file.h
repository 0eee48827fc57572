/* Files that are opened with care. */
#ifndef OPSCOPE_BASE_FILE_H
#define OPSCOPE_BASE_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* Opens the regular file at `path` for reading, with `flags` besides (O_NOFOLLOW: no link). What stood there when it was found may be a pipe by now: never
 * waits for a writer. Fills *st, unless that is NULL. -1 and *e, ERR_IO, where there is no such file. */
int file_open_regular(const char *path, int flags, struct stat *st, struct err *e);

/* Appends all that the file holds, or no more than one byte beyond `most` of it: a device or a pipe may have no end. -1 and *e, ERR_IO. */
int file_read_all(const char *path, size_t most, struct buf *out, struct err *e);

#endif
