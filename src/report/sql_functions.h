/* SQLite's functions that search text, in time that grows with the text and not with text times pattern: instr, replace, trim, ltrim and rtrim
 * give what SQLite's own give. One instruction of SQLite's machine runs a function to its end, so that no limit of time can end the function
 * meanwhile. */
#ifndef OPSCOPE_REPORT_SQL_FUNCTIONS_H
#define OPSCOPE_REPORT_SQL_FUNCTIONS_H

#include <sqlite3.h>

#include "base/err.h"

/* In place of SQLite's own. SQLITE_OK, or why they cannot be added. */
int sql_functions_add(sqlite3 *db);

#endif
