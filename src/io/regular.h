/* Opening files that were found, not named: what stood there may be a pipe by now, or a device, and nobody is to wait for it. */
#ifndef OPSCOPE_IO_REGULAR_H
#define OPSCOPE_IO_REGULAR_H

#include "base/err.h"

/* A descriptor of the regular file at `path`, for reading; -1 and *e, ERR_IO, where there is none. Never waits for a writer. */
int regular_open(const char *path, struct err *e);
/* The same; a link is refused. */
int regular_open_itself(const char *path, struct err *e);

#endif
