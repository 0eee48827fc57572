/* SQLite where memory runs out. */
#ifndef OPSCOPE_IO_SQLMEM_H
#define OPSCOPE_IO_SQLMEM_H

#include <sqlite3.h>

#include "base/mem.h"

static inline bool sqlmem_is_short(int rc) { return (rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM; }

/* rc, unless SQLite had no memory: then mem_fail, as for an allocation of ours. Not below SQLite, which must not be left by a jump. */
static inline int sqlmem(int rc)
{
	if (sqlmem_is_short(rc))
		mem_fail(0);
	return rc;
}

/* The text of a column; NULL where it has none. */
static inline const char *sqlmem_text(sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	if (!text && sqlite3_column_type(st, column) != SQLITE_NULL)
		mem_fail(0);
	return text;
}

/* Closes a connection whose user was left half-way (mem_undo): statements that are still there would keep it open. A virtual table, such as
 * pragma_table_xinfo, may have a statement of its own in the list, which it finalizes when the statement around it is reset. */
static inline void sqlmem_close(sqlite3 *db)
{
	for (sqlite3_stmt *st = NULL; db && (st = sqlite3_next_stmt(db, st));)
		sqlite3_reset(st);
	for (sqlite3_stmt *st; db && (st = sqlite3_next_stmt(db, NULL));)
		sqlite3_finalize(st);
	sqlite3_close(db);
}

#endif
