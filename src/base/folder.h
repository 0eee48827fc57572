/* Folders. */
#ifndef OPSCOPE_BASE_FOLDER_H
#define OPSCOPE_BASE_FOLDER_H

#include <dirent.h>

#include "base/err.h"
#include "base/mem.h"

/* Makes it, with those above it, unless it is there; it must then be one that can be written to. ERR_IO. */
int folder_make(const char *path, struct err *e);

/* What is in one. */
struct folder {
	DIR *d;                /* NULL = it cannot be read */
	struct mem_undo undo;
};

/* False where it cannot be read; folder_next then finds nothing. */
bool folder_open(struct folder *f, const char *path);
const char *folder_next(struct folder *f); /* a name, valid until the next call; NULL = no more */
void folder_close(struct folder *f);       /* also of one that is {0} */

#endif
