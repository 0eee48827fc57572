#include "io/sqldb_schema.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/sqlmem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WAL_HEADER_BYTES = 32,
	JOURNAL_HEADER_BYTES = 28,
	CELL_BYTES_MIN = 6,     /* a pointer to a cell, its two lengths, a record of one column */
	VALUE_MAX = 256 << 20,  /* longer values are not what such files hold */
};

/* As a URI. Immutable: SQLite takes no locks, looks for no journal and writes nothing beside the file. */
static void put_uri(struct buf *b, const char *path, const char *parameters)
{
	buf_cstr(b, path[0] == '/' ? "file://" : "file:./");
	for (; *path; path++) {
		if (*path == '%' || *path == '?' || *path == '#')
			buf_printf(b, "%%%02X", (unsigned char)*path);
		else
			buf_char(b, *path);
	}
	buf_cstr(b, parameters);
	buf_char(b, 0);
}

static uint64_t bytes_beside(const char *path, const char *suffix)
{
	struct buf b = {0};
	struct stat st;
	buf_printf(&b, "%s%s", path, suffix);
	buf_char(&b, 0);
	uint64_t n = stat(b.p, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	buf_release(&b);
	return n;
}

/* A journal whose header was not wiped: the file may hold half a transaction. */
static bool journal_is_hot(const char *path)
{
	struct buf b = {0};
	unsigned char head[8];
	static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	buf_printf(&b, "%s-journal", path);
	buf_char(&b, 0);
	int fd = open(b.p, O_RDONLY | O_CLOEXEC);
	bool hot = fd >= 0 && read(fd, head, sizeof head) == sizeof head && memcmp(head, magic, sizeof head) == 0;
	if (fd >= 0)
		close(fd);
	buf_release(&b);
	return hot;
}

static bool exec(struct sqldb *d, const char *sql)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static void close_library(struct sqldb *d)
{
	sqlmem_close(d->db);
	d->db = NULL;
}

/* Opens the library on the file and reads its schema; false when that fails, with d->db left open for its message. */
static bool open_library(struct sqldb *d, const char *parameters, bool with_wal)
{
	struct buf uri = {0};
	put_uri(&uri, d->path, parameters);
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
	bool ok = sqlite3_open_v2(uri.p, &d->db, flags, NULL) == SQLITE_OK;
	buf_release(&uri);
	if (!ok)
		return false;
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	if (with_wal) {
		/* The index of the WAL is kept in memory instead of a file beside, and nothing is moved into the file. */
		sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		if (!exec(d, "PRAGMA locking_mode=EXCLUSIVE"))
			return false;
	}
	return exec(d, "PRAGMA cell_size_check=ON") && exec(d, "SELECT count(*) FROM sqlite_master");
}

static int refuse(struct sqldb *d, struct err *e)
{
	int code = sqlite3_errcode(d->db) & 0xff;
	bool io = code == SQLITE_CANTOPEN || code == SQLITE_IOERR || code == SQLITE_PERM;
	err_set(e, io ? ERR_IO : ERR_FORMAT, "%s: %s: %s", d->path, io ? "cannot read" : "not a sound SQLite database",
	        d->db ? sqlite3_errmsg(d->db) : "out of memory");
	sqldb_close(d);
	return -1;
}

static void abandon(void *d)
{
	sqldb_close(d);
}

int sqldb_open(struct sqldb *d, const char *path, bool *stale, struct err *e)
{
	*d = (struct sqldb){.path = path};
	*stale = false;
	d->fd = open(path, O_RDONLY | O_CLOEXEC);
	mem_undo_begin(&d->undo, abandon, d);
	struct stat st;
	if (d->fd < 0 || fstat(d->fd, &st) < 0) {
		err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
		sqldb_close(d);
		return -1;
	}
	d->file_bytes = (uint64_t)st.st_size;
	bool wal = bytes_beside(path, "-wal") > WAL_HEADER_BYTES;
	if (wal && open_library(d, "?mode=ro&vfs=unix-none", true)) {
		close(d->fd);
		d->fd = -1;
		d->schema = sqldb_schema_read(d->db);
		return 0;
	}
	if (wal)
		close_library(d);
	*stale = wal || (bytes_beside(path, "-journal") > JOURNAL_HEADER_BYTES && journal_is_hot(path));
	if (!open_library(d, "?mode=ro&immutable=1", false))
		return refuse(d, e);
	d->schema = sqldb_schema_read(d->db);
	return 0;
}

void sqldb_close(struct sqldb *d)
{
	mem_undo_end(&d->undo);
	close_library(d);
	sqldb_schema_free(d->schema);
	d->schema = NULL;
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* A statement with up to two texts bound; NULL when it cannot be prepared. */
static sqlite3_stmt *prepare(const struct sqldb *d, const char *sql, const char *a, const char *b)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(d->db, sql, -1, &st, NULL) != SQLITE_OK)
		return NULL;
	if (a)
		sqlite3_bind_text(st, 1, a, -1, SQLITE_STATIC);
	if (b)
		sqlite3_bind_text(st, 2, b, -1, SQLITE_STATIC);
	return st;
}

/* Its first value; `absent` when there is none. */
static int64_t ask(const struct sqldb *d, const char *sql, const char *a, const char *b, int64_t absent)
{
	sqlite3_stmt *st = prepare(d, sql, a, b);
	int64_t v = absent;
	if (st && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

/* `before`, the quoted table name, `after`. */
static void put_sql(struct buf *b, const char *before, const char *table, const char *after)
{
	buf_cstr(b, before);
	buf_char(b, '"');
	for (; *table; table++) {
		if (*table == '"')
			buf_char(b, '"');
		buf_char(b, *table);
	}
	buf_char(b, '"');
	buf_cstr(b, after);
	buf_char(b, 0);
}

static int64_t ask_table(const struct sqldb *d, const char *before, const char *table, const char *after, int64_t absent)
{
	if (!sqldb_has_table(d, table))
		return absent;
	struct buf sql = {0};
	put_sql(&sql, before, table, after);
	int64_t v = ask(d, sql.p, NULL, NULL, absent);
	buf_release(&sql);
	return v;
}

int64_t sqldb_count(const struct sqldb *d, const char *table)
{
	return ask_table(d, "SELECT count(*) FROM ", table, "", -1);
}

int64_t sqldb_max_rowid(const struct sqldb *d, const char *table)
{
	int64_t n = ask_table(d, "SELECT max(_rowid_) FROM ", table, "", 0);
	int64_t most = (int64_t)(d->file_bytes / CELL_BYTES_MIN);
	return n < 0 ? 0 : n < most || d->fd < 0 ? n : most;
}

/* Where the wanted columns stand in the table. */
struct plan {
	int *place;          /* -1 = the table lacks it */
	int rowid;           /* place of the column that is the row id, -1 = none */
	bool plain;          /* nothing in it that only the library can tell: defaults, generated columns */
};

static bool read_plan(const struct sqldb *d, const char *table, const char *const *columns, int n, struct plan *p)
{
	sqlite3_stmt *st = prepare(d, "SELECT cid, name, type, dflt_value, pk, hidden FROM pragma_table_xinfo(?1)", table, NULL);
	if (!st)
		return false;
	*p = (struct plan){.place = NEW_ARRAY_RAW(n ? n : 1, int), .rowid = -1, .plain = true};
	for (int k = 0; k < n; k++)
		p->place[k] = -1;
	int keys = 0;
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 1), *type = (const char *)sqlite3_column_text(st, 2);
		bool computed = sqlite3_column_int(st, 5) != 0;
		int cid = sqlite3_column_int(st, 0);
		p->plain &= !computed && sqlite3_column_type(st, 3) == SQLITE_NULL;
		if (sqlite3_column_int(st, 4) && keys++ == 0 && type && sqlite3_stricmp(type, "INTEGER") == 0)
			p->rowid = cid;
		for (int k = 0; k < n && !computed; k++)
			if (name && sqlite3_stricmp(name, columns[k]) == 0)
				p->place[k] = cid;
	}
	sqlite3_finalize(st);
	/* A key with an index of its own is not the row id. */
	if (keys != 1 || ask(d, "SELECT 1 FROM pragma_index_list(?1) WHERE origin='pk'", table, NULL, 0) == 1)
		p->rowid = -1;
	return true;
}

static bool has_rowid(const struct sqldb *d, const char *table)
{
	struct buf sql = {0};
	put_sql(&sql, "SELECT _rowid_ FROM ", table, " LIMIT 0");
	sqlite3_stmt *st = prepare(d, sql.p, NULL, NULL);
	buf_release(&sql);
	sqlite3_finalize(st);
	return st != NULL;
}

/* The index would be shorter to read, but its order is not that of the rows. */
static sqlite3_stmt *select_columns(const struct sqldb *d, const char *table, const char *const *columns, int n, const struct plan *p)
{
	struct buf sql = {0}, from = {0};
	buf_cstr(&sql, "SELECT ");
	for (int k = 0; k < n; k++)
		buf_printf(&sql, p->place[k] < 0 ? "%sNULL" : "%s\"%s\"", k ? "," : "", columns[k]);
	if (!n)
		buf_cstr(&sql, "NULL");
	put_sql(&from, " FROM ", table, " NOT INDEXED");
	buf_cstr(&sql, from.p);
	buf_char(&sql, 0);
	sqlite3_stmt *st = prepare(d, sql.p, NULL, NULL);
	buf_release(&sql);
	buf_release(&from);
	return st;
}

int sqlscan_open(struct sqlscan *s, const struct sqldb *d, const char *table, const char *const *columns, struct err *e)
{
	*s = (struct sqlscan){.table = table};
	while (columns[s->n])
		s->n++;
	int64_t root = sqldb_root_page(d, table);
	if (root <= 0)
		return err_set(e, ERR_FORMAT, "%s: has no table %s", d->path, table);
	struct plan p;
	if (!read_plan(d, table, columns, s->n, &p))
		return err_set(e, ERR_FORMAT, "%s: the columns of table %s cannot be read: %s", d->path, table, sqlite3_errmsg(d->db));
	if (d->fd >= 0 && p.plain && root <= UINT32_MAX && has_rowid(d, table))
		s->direct = sqlpage_open(d->fd, (uint32_t)root, p.place, s->n, p.rowid);
	if (!s->direct) {
		s->st = select_columns(d, table, columns, s->n, &p);
		s->v = s->cell = NEW_ARRAY(s->n ? s->n : 1, struct sqlpage_value);
	}
	mem_free(p.place);
	if (s->direct || s->st)
		return 0;
	err_set(e, ERR_FORMAT, "%s: table %s cannot be read: %s", d->path, table, sqlite3_errmsg(d->db));
	sqlscan_close(s);
	return -1;
}

static void copy_cell(sqlite3_stmt *st, int c, struct sqlpage_value *v)
{
	switch (sqlite3_column_type(st, c)) {
	case SQLITE_INTEGER:
		v->type = SQLPAGE_INT;
		v->i = sqlite3_column_int64(st, c);
		break;
	case SQLITE_FLOAT:
		v->type = SQLPAGE_REAL;
		v->real = sqlite3_column_double(st, c);
		break;
	case SQLITE_TEXT:
		v->type = SQLPAGE_TEXT;
		v->s.p = (const char *)sqlite3_column_text(st, c); /* before its length is asked for */
		v->s.n = v->s.p ? (size_t)sqlite3_column_bytes(st, c) : 0;
		break;
	case SQLITE_BLOB:
		v->type = SQLPAGE_BLOB;
		v->s.p = sqlite3_column_blob(st, c);
		v->s.n = v->s.p ? (size_t)sqlite3_column_bytes(st, c) : 0;
		break;
	default:
		v->type = SQLPAGE_NULL;
	}
}

bool sqlscan_next(struct sqlscan *s)
{
	if (s->direct) {
		s->v = sqlpage_next(s->direct);
		if (!s->v)
			s->damaged = sqlpage_damaged(s->direct);
		s->row += s->v != NULL;
		return s->v != NULL;
	}
	int rc = s->st ? sqlite3_step(s->st) : SQLITE_DONE;
	if (rc != SQLITE_ROW) {
		s->damaged = s->damaged || rc != SQLITE_DONE;
		sqlite3_finalize(s->st);
		s->st = NULL;
		return false;
	}
	for (int c = 0; c < s->n; c++)
		copy_cell(s->st, c, &s->cell[c]);
	s->row++;
	return true;
}

void sqlscan_close(struct sqlscan *s)
{
	if (s->direct)
		sqlpage_close(s->direct);
	sqlite3_finalize(s->st);
	mem_free(s->cell);
	s->direct = NULL;
	s->st = NULL;
	s->cell = NULL;
	s->v = NULL;
}
