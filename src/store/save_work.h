/* Within save*.c and load*.c: an .opscope file that is being written, and what both must know of its tables. */
#ifndef OPSCOPE_STORE_SAVE_WORK_H
#define OPSCOPE_STORE_SAVE_WORK_H

#include "store/save.h"

#include "base/buf.h"
#include "io/atomic.h"

#include <sqlite3.h>

#define SAVE_VFS "unix-none" /* nobody else writes to the file; and where flock is made of the locks that SQLite takes, it would wait for our own */
#define SAVE_META "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID"

struct save {
	sqlite3 *db;
	struct atomic_file file; /* written by SQLite under file.temp, which it cannot take for a URI: there is a '/' in it */
	int lock_fd;             /* of the file that is added to, locked; -1 = a new file */
	int64_t last_id;         /* highest number of an aggregation so far */
	struct mem_undo undo;
};

int save_fail(struct save *s, struct err *e);
/* save_begin of a database of any kind. */
struct save *save_begin_tables(const char *path, mode_t mode, uint64_t big, int id, int version, const char *tables, struct err *e);
/* Opens s->file for SQLite. */
int save_open(struct save *s, struct err *e);
int save_run(struct save *s, const char *sql, struct err *e);
sqlite3_stmt *save_prepare(struct save *s, const char *sql, struct err *e);
/* Frees *s and what it holds, but for the file. */
void save_release(struct save *s);
void save_undo_begin(struct save *s);
/* Runs a bound statement that gives no rows, and makes it ready for the next. */
int save_step(struct save *s, sqlite3_stmt *st, struct err *e);
void save_bind_str(sqlite3_stmt *st, int i, struct str v);
/* Sets one fact; replaces what was there. */
int save_fact(struct save *s, const char *key, struct str text, int64_t number, struct err *e);

/* save_columns.c */
int save_strings(struct save *s, const struct intern *t, struct err *e);
int save_tables(struct save *s, const struct profile *p, struct err *e);

/* save_rows.c. A table of plain rows as this program makes it: columns with names and types, nothing that a stranger's file could run.
 * 1 = it is one, and *columns its column names (NUL between them); 0 = there is no such table; -1 = it was changed, or the library failed with
 * the extended code *code. */
int save_table_columns(sqlite3 *db, const char *name, struct buf *columns, int *code);
/* The names of all report tables, NUL behind each. */
int save_report_tables(struct save *s, struct buf *names, struct err *e);

/* load_aggregations.c: what the file says of its aggregations. ERR_FORMAT when that is damaged. */
int load_aggregations(sqlite3 *db, const char *path, struct profile *p, struct err *e);

#endif
