/* Rows of a SQL statement as a struct table. */
#ifndef OPSCOPE_QUERY_SQL_RESULT_H
#define OPSCOPE_QUERY_SQL_RESULT_H

#include <sqlite3.h>

#include "base/table.h"

/* Steps through *st to its end and fills *out, which has been initialised. In SQLite each value has a type, in a table each column: a column holds integers if
 * all its values are integers, reals if all are numbers, else text. Units come from the column's name (dur_ns, size_bytes, busy_pct).
 * Before memory is used, fits(context, bytes) is asked about the total: the values so far, the cells that they become, and their text, here and as it will be
 * written. Returns SQLITE_DONE; SQLITE_TOOBIG if fits() gave false; or SQLite's error code. */
int sql_result(sqlite3_stmt *st, bool (*fits)(void *context, uint64_t bytes), void *context, struct table *out);

/* The same rows piece by piece, so that a result of any length takes the memory of one piece. take(context, piece) gets a table with all columns: 0 = go on, 1 =
 * no more are wanted, -1 = failed. The first piece may be empty; the others have rows. The piece is released after take().
 * The type of a column depends on all its values. A result of more than one piece is therefore stepped through twice: for the types, then for the values.
 * Returns SQLITE_DONE; SQLITE_ABORT if take() gave -1; SQLITE_MISMATCH if the second time brought values that do not fit the types; or SQLite's error code. */
int sql_result_pieces(sqlite3_stmt *st, int (*take)(void *context, struct table *piece), void *context);

#endif
