/* Files and folders that are written under another name beside their place: .opscope- and 16 hexadecimal digits. Whoever writes one holds its lock (flock). A killed process
 * leaves it: the next process of the same user that writes beside it removes what can be locked, on network file systems after a day. Folders here are paths with a '/' at
 * the end. */
#ifndef OPSCOPE_IO_LEFT_H
#define OPSCOPE_IO_LEFT_H

#include <stdbool.h>

/* A new name in `folder`, as a block. */
char *left_name(const char *folder);

/* Locks what was just made at `path`. False, with EEXIST: another process, cleaning up, was faster; what was made is to be made again under another name. */
bool left_lock(int fd, const char *path);

/* Removes what killed processes left. Of a very large folder only a part is looked at; a left folder in which other than files lie stays. */
void left_remove(const char *folder);

/* Makes a folder in `folder` that its owner alone may use, after left_remove. *path is its name, for the caller to free. Returns its locked descriptor, to be closed when it is
 * finished or gone; -1 with errno: *path is NULL. */
int left_make_folder(const char *folder, char **path);

#endif
