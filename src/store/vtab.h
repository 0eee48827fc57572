/* The store's tables, and any struct table, as read-only tables of a SQLite connection: no copy is made, a query reads the
 * columns where they lie. Strings, categories and kinds appear as text; ids and references that are "none" as NULL; tracks,
 * spans, launches and argument sets as row numbers, which are the rowid of those tables:
 *
 *   SELECT s.name, g.dur_ns FROM gpu_op g JOIN span s ON s.rowid = g.op
 *
 * The profile, or the struct table, must outlive the connection. */
#ifndef OPSCOPE_STORE_VTAB_H
#define OPSCOPE_STORE_VTAB_H

#include <sqlite3.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/table.h"
#include "store/profile.h"

/* One table for each of store_tables[], under its name. */
int vtab_add_store(sqlite3 *db, const struct profile *p, struct err *e);

/* A table that is made when a query first names it. */
struct vtab_lazy {
	const char *name;
	/* NULL and *e when there is none. What it gives must outlive the connection. */
	const struct table *(*make)(void *arg, struct err *e);
	void *arg;
};

/* Under l->name; *l is not copied and must outlive the connection. */
int vtab_add_table(sqlite3 *db, const struct vtab_lazy *l, struct err *e);

/* Text that is there, as a function's or a column's value; it must outlive the statement. However long it is, it can be read: the connection's
 * SQLITE_LIMIT_LENGTH is for what a query makes of it, and is raised where that needs it. */
void vtab_result_text(sqlite3_context *x, struct str s);

const char *vtab_sql_type(enum cell_type t); /* "INTEGER" */

/* Appends a name as SQL wants it: in double quotes, with those inside doubled. */
void vtab_put_name(struct buf *b, const char *name);

#endif
