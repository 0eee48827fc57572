/* Rows of a SQL statement as a struct table. */
#ifndef OPSCOPE_REPORT_SQL_RESULT_H
#define OPSCOPE_REPORT_SQL_RESULT_H

#include <sqlite3.h>

#include "base/table.h"

/* Steps through *st to its end and fills *out, which has been initialised. SQLite gives each value a type, a table each
 * column: integers if all are, reals if all are numbers, else text. Units come from the column's name (dur_ns, size_bytes,
 * busy_pct). Gives SQLITE_DONE or the error code, SQLITE_TOOBIG when it would be more than max_bytes (0 = any). */
int sql_result(sqlite3_stmt *st, uint64_t max_bytes, struct table *out);

#endif
