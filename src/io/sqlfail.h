/* What SQLite says when the system failed it: of a read that failed and of one that found damage it says the same ("malformed"), but an errno is left. */
#ifndef OPSCOPE_IO_SQLFAIL_H
#define OPSCOPE_IO_SQLFAIL_H

#include <sqlite3.h>

#include "base/err.h"

/* ERR_NOMEM; ERR_IO, and *why says in words what failed; ERR_NONE: what the code `rc` of a call says is not the system's doing, or no failure.
 * `db` may be NULL, as after sqlite3_open_v2 without memory. */
enum err_code sqlfail(sqlite3 *db, int rc, const char **why);

#endif
