/* A file that appears whole or not at all: it is written beside its place under another name, brought to the disk, and
 * renamed. A link stays a link, the file that it points to is replaced; a replaced file's permissions are kept, and its owner and
 * group where that is allowed; a new file gets the permissions that the umask leaves.
 *
 *   struct atomic_file f;
 *   if (atomic_begin(&f, path, e))
 *           return -1;
 *   ... write to f.fd, or to the file f.temp ...
 *   return ok ? atomic_commit(&f, e) : atomic_abort(&f);
 *
 * An unfinished file is removed when the process ends by exit(); in the opscope program also when a signal ends it (io/leftovers.h). What a killed
 * process leaves is removed by a later one (io/left.h). */
#ifndef OPSCOPE_IO_ATOMIC_H
#define OPSCOPE_IO_ATOMIC_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct atomic_file {
	int fd;        /* for writing; closed by commit and abort */
	char *temp;    /* what is being written: always has a '/' in it */
	char *target;  /* what it will be: `path` with links followed */
	char *path;    /* as given, for messages */
	int leftover;  /* io/leftovers.h */
	struct mem_undo undo;
};

/* ERR_IO when `path` is not a regular file or stat fails, when no file can be created in its folder, or when another user's link or file may not be touched
 * (io/follow.h). *f is then empty. */
int atomic_begin(struct atomic_file *f, const char *path, struct err *e);

/* As atomic_begin; a file that is new has at most the permissions `mode`. */
int atomic_begin_as(struct atomic_file *f, const char *path, mode_t mode, struct err *e);

/* As atomic_begin; but what is at `path` and no regular file, a pipe or device, is opened and written to as it stands. f->temp is then NULL. Waits for whoever reads a pipe. */
int atomic_begin_any(struct atomic_file *f, const char *path, struct err *e);

/* All of `s`, at the end of what is there. ERR_IO, as for a full disk; *f must then be aborted. */
int atomic_write(struct atomic_file *f, struct str s, struct err *e);

/* Either ends the life of *f. After a failed commit nothing is left, and an older file stands as it was. */
int atomic_commit(struct atomic_file *f, struct err *e);
/* Always -1. */
int atomic_abort(struct atomic_file *f);

/* write() until all is written; -1 with errno. */
int fd_write_all(int fd, struct str s);

#endif
