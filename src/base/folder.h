/* Folders. */
#ifndef OPSCOPE_BASE_FOLDER_H
#define OPSCOPE_BASE_FOLDER_H

#include <sys/types.h>

#include "base/err.h"

/* Makes the folder at `path`, and those above it, unless it is there; the process must then be able to write to it. A folder that is made has the
 * permissions `mode`, those above it 0777, each as far as the umask allows. ERR_IO. */
int folder_make(const char *path, mode_t mode, struct err *e);

#endif
