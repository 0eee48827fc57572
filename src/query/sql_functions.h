/* instr, replace, trim, ltrim and rtrim with the results of SQLite's own, in time linear in the text; SQLite's own take text times pattern. A time limit
 * cannot end a function while it runs: SQLite looks at the limit between instructions, and a function is one instruction. */
#ifndef OPSCOPE_QUERY_SQL_FUNCTIONS_H
#define OPSCOPE_QUERY_SQL_FUNCTIONS_H

#include <sqlite3.h>

#include "base/err.h"

/* In place of SQLite's own. SQLITE_OK, or why they cannot be added. */
int sql_functions_add(sqlite3 *db);

#endif
