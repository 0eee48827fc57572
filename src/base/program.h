/* Programs on the PATH. */
#ifndef OPSCOPE_BASE_PROGRAM_H
#define OPSCOPE_BASE_PROGRAM_H

#include "base/buf.h"

/* Looks for what execvp would run under this name. 0 and its path in *path (which may be NULL; NUL-terminated, the NUL not counted), or an errno:
 * ENOENT when there is none, EACCES when there are only files that may not be executed, or a directory. */
int program_find(const char *name, struct buf *path);

#endif
