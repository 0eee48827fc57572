/* Rows of a SQL statement as a struct table. */
#ifndef OPSCOPE_QUERY_SQL_RESULT_H
#define OPSCOPE_QUERY_SQL_RESULT_H

#include <sqlite3.h>

#include "base/table.h"

/* Steps through *st to its end and fills *out, which has been initialised. SQLite gives each value a type, a table each
 * column: integers if all are, reals if all are numbers, else text. Units come from the column's name (dur_ns, size_bytes,
 * busy_pct). Gives SQLITE_DONE or the error code, SQLITE_TOOBIG when fits(context, bytes) says that what is held of it is too much: the
 * values so far, the cells that they become, and their text, here and as it will be written. */
int sql_result(sqlite3_stmt *st, bool (*fits)(void *context, uint64_t bytes), void *context, struct table *out);

/* The same rows, a piece of them at a time: take(context, piece) gets tables with the columns of the whole, at least one, and all but the first with rows; 1
 * = no more are wanted. So a result of any length takes no more memory than a piece. A result of more than one piece is stepped through twice, since
 * a column's type is what all its values can be: SQLITE_MISMATCH when the second time brings values that do not fit. SQLITE_DONE, SQLITE_ABORT when take
 * gave -1, or the error code. */
int sql_result_pieces(sqlite3_stmt *st, int (*take)(void *context, struct table *piece), void *context);

#endif
