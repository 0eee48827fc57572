/* Files that are opened with care. */
#ifndef OPSCOPE_BASE_FILE_H
#define OPSCOPE_BASE_FILE_H

#include <sys/stat.h>

#include "base/err.h"

/* Opens the regular file at `path` for reading, with `flags` besides (O_NOFOLLOW: no link). What stood there when it was found may be a pipe by now: never
 * waits for a writer. Fills *st, unless that is NULL. -1 and *e, ERR_IO, where there is no such file. */
int file_open_regular(const char *path, int flags, struct stat *st, struct err *e);

#endif
