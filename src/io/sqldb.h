/* Reading SQLite databases that other programs wrote. Opened read-only, as a file that nobody may change: neither a lock, a
 * leftover journal or WAL, nor a read-only medium stands in the way. Tables and columns are probed by name, in any case. SQLite
 * holds no column to its type: integers stored as REAL or TEXT are read as what they are, other values of a wrong type as "not
 * stated", and counted by the caller. Only ordinary tables are looked at: no views, no virtual tables
 * and no generated columns, which would run what a stranger wrote.
 *
 * A damaged page ends the scan that meets it, and nothing else. A read that fails, and memory that cannot be had, end all: no table is
 * opened any more, each scan ends, and sqldb_close says what failed, so that half a file never passes for all of it. */
#ifndef OPSCOPE_IO_SQLDB_H
#define OPSCOPE_IO_SQLDB_H

#include <sqlite3.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "io/sqlpage.h"

struct sqldb {
	sqlite3 *db;
	const char *path; /* borrowed */
	uint64_t file_bytes;
	int fd;           /* of the direct reader (io/sqlpage.h); -1 = all goes through the library */
	struct sqldb_schema *schema; /* ordinary tables and their root pages, read once */
	struct err failed;           /* the first read or allocation that failed; code ERR_NONE = none */
	struct mem_undo undo;
};

/* -1 with ERR_IO, ERR_NOMEM or ERR_FORMAT. A WAL beside the file that holds data not yet in it is read too where that can be done
 * without writing beside the file; else, and where a transaction was left half-way, *stale is set: the newest rows may be
 * missing. */
int sqldb_open(struct sqldb *d, const char *path, bool *stale, struct err *e);
/* -1 with ERR_IO or ERR_NOMEM when a read or an allocation failed since sqldb_open, or the file has become shorter: what was read of it is
 * then not to be used. */
int sqldb_close(struct sqldb *d, struct err *e) __attribute__((warn_unused_result));

/* The names of the ordinary tables, a line each, for telling whose file it is. 0; 1 = not a sound database; -1 with ERR_IO or ERR_NOMEM. */
int sqldb_list(const char *path, struct buf *names, struct err *e);

bool sqldb_has_table(const struct sqldb *d, const char *table);
/* As the file writes the name of such a table; `table` itself when there is none. */
const char *sqldb_table_name(const struct sqldb *d, const char *table);
/* Rows of a table, by its own count; -1 when it cannot be read. */
int64_t sqldb_count(struct sqldb *d, const char *table);
/* About how many rows: the largest rowid, at the cost of one look-up; 0 = empty or unknown. For reserving memory: never more
 * than could lie in a file of this size. */
int64_t sqldb_max_rowid(struct sqldb *d, const char *table);
/* Calls fn(context, name) for every ordinary table that is not SQLite's own, in the order of the schema. -1: cannot be read. */
int sqldb_each_table(const struct sqldb *d, void (*fn)(void *context, const char *table), void *context);
/* Views and virtual tables are not read; says so, with their names, where there are any. For programs that make none of their own
 * (DLProf does). */
void sqldb_tell_views(const struct sqldb *d, struct diags *to);

/* Appends a path as a URI, NUL-terminated. With the parameter immutable=1, SQLite takes no locks, looks for no journal and writes nothing beside the file. */
void sqldb_put_uri(struct buf *b, const char *path, const char *parameters);

/* A scan over one table with a fixed list of wanted columns. A column that the table lacks reads as NULL. */
struct sqlscan {
	const struct sqlpage_value *v; /* the current row */
	const char *table;
	int64_t row;   /* rows delivered so far */
	bool damaged;  /* the scan ended early: corrupt page, or *db has failed */
	int n;
	struct sqlpage *direct;        /* either the direct reader, */
	sqlite3_stmt *st;              /* or the library, whose cells are copied into `cell` */
	struct sqlpage_value *cell;
	struct sqldb *db;
};

/* `columns`: NULL-terminated names; column i of the scan is columns[i]. -1 when the table is not there or cannot be read.
 * Rows come in the order in which they are stored. `table` is borrowed. */
int sqlscan_open(struct sqlscan *s, struct sqldb *d, const char *table, const char *const *columns, struct err *e);
bool sqlscan_next(struct sqlscan *s); /* false at the end; then look at s->damaged */
void sqlscan_close(struct sqlscan *s);

static inline bool sqlscan_is_null(const struct sqlscan *s, int c) { return s->v[c].type == SQLPAGE_NULL; }
/* The integer that a value is: of any type, but exactly; false, and 0, for all else. */
bool sqlvalue_i64(const struct sqlpage_value *v, int64_t *i);
static inline bool sqlscan_i64(const struct sqlscan *s, int c, int64_t *v)
{
	if (s->v[c].type != SQLPAGE_INT)
		return sqlvalue_i64(&s->v[c], v);
	*v = s->v[c].i;
	return true;
}
/* A number of either kind; false, and 0, for all else. */
static inline bool sqlscan_f64(const struct sqlscan *s, int c, double *v)
{
	bool is = s->v[c].type == SQLPAGE_REAL;
	*v = is ? s->v[c].real : s->v[c].type == SQLPAGE_INT ? (double)s->v[c].i : 0;
	return is || s->v[c].type == SQLPAGE_INT;
}
/* Text or blob bytes, valid until the next row; {0} for all else. */
static inline struct str sqlscan_str(const struct sqlscan *s, int c)
{
	return s->v[c].type >= SQLPAGE_TEXT ? s->v[c].s : (struct str){0};
}

#endif
