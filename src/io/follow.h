/* Where a path leads that is written to, and whether that may be touched. In a folder where everyone may write and only the owner of a file may remove it (/tmp),
 * what another user has put there for us to find is not touched, as by the kernel with protected_symlinks, protected_regular and protected_fifos. */
#ifndef OPSCOPE_IO_FOLLOW_H
#define OPSCOPE_IO_FOLLOW_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* The folder of a path with its last '/'; "./" when it names none. */
void follow_put_folder(struct buf *b, const char *path);
/* The text of *b as a block of its own. */
char *follow_take(struct buf *b);

/* Whether what lies at `path`, and belongs to `owner`, may be touched. */
bool follow_may_touch(const char *path, uid_t owner);

enum followed { FOLLOWED_FAILED = -1, FOLLOWED_NOTHING, FOLLOWED_FILE, FOLLOWED_DIRECTORY, FOLLOWED_OTHER /* pipe, device */ };

/* Follows the links at the end of `path`. *end is what they lead to, for the caller to free, and *st what lies there. What is no file and is reached through a descriptor
 * (/dev/fd/N) has no other path: *end is then that of the descriptor. FOLLOWED_FAILED is ERR_IO: there is nothing to follow to, or another user's link, file, pipe or device may
 * not be touched; *end is then NULL. Another user's directory may. */
enum followed follow_links(const char *path, char **end, struct stat *st, struct err *e);

/* Opens for writing, as it stands, what follow_links found and is no file. Waits for whoever reads the pipe. -1 with errno; EAGAIN: something else lies there now. */
int follow_open(const char *end, const struct stat *st);

#endif
