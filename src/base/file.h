/* Files that are opened with care. */
#ifndef OPSCOPE_BASE_FILE_H
#define OPSCOPE_BASE_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading, with `flags` besides (O_NOFOLLOW: no link), and fills *st. -1 where there is none: never waits for the other end of a pipe. */
int file_open_regular(const char *path, int flags, struct stat *st);

#endif
