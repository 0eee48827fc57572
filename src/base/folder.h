/* Folders. */
#ifndef OPSCOPE_BASE_FOLDER_H
#define OPSCOPE_BASE_FOLDER_H

#include "base/err.h"

/* Makes it, with those above it, unless it is there; it must then be one that can be written to. ERR_IO. */
int folder_make(const char *path, struct err *e);

#endif
