/* How SQLite opens the files of others: SQLite's own open would wait for the writer of a pipe that has taken a file's place. */
#ifndef OPSCOPE_IO_SQLVFS_H
#define OPSCOPE_IO_SQLVFS_H

#include <stdbool.h>

#define SQLVFS "opscope-regular" /* a database, and a WAL or journal beside it, must be regular files; nothing is written to them, and no lock is taken */

/* To be called before a database is opened with vfs=SQLVFS. False: there is no memory for it. */
bool sqlvfs_register(void);

#endif
