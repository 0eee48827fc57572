/* Folders. */
#ifndef OPSCOPE_BASE_FOLDER_H
#define OPSCOPE_BASE_FOLDER_H

#include <dirent.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* Makes the folder at `path`, and those above it, unless it is there; the process must then be able to write to it. A folder that is made has the
 * permissions `mode`, those above it 0777, each as far as the umask allows. ERR_IO. */
int folder_make(const char *path, mode_t mode, struct err *e);

/* The names in a folder. */
struct folder {
	DIR *d;                /* NULL = it cannot be read */
	int error;             /* the errno of an open or a read of the folder that failed; 0 = none has */
	struct mem_undo undo;
};

/* False when the folder cannot be read: f->error says why, and folder_next finds nothing. folder_close is to be called in either case. */
bool folder_open(struct folder *f, const char *path);
const char *folder_next(struct folder *f); /* a name, valid until the next call; NULL = no more */
void folder_close(struct folder *f);       /* also of one that is {0} */

#endif
