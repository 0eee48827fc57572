/* Whether the system failed SQLite. SQLite says "malformed" both for a read that failed and for damage; only the errno of the read tells them apart. */
#ifndef OPSCOPE_IO_SQLFAIL_H
#define OPSCOPE_IO_SQLFAIL_H

#include <sqlite3.h>

#include "base/err.h"

/* ERR_NOMEM; ERR_IO, with the reason in *why (valid until the next call on db); ERR_NONE when the code `rc` of a call is no failure, or a failure
 * that is not the system's. `db` may be NULL, as after sqlite3_open_v2 without memory. */
enum err_code sqlfail(sqlite3 *db, int rc, const char **why);

#endif
