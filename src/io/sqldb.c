#include "io/sqldb_schema.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/sqlmem.h"
#include "io/sqlvfs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WAL_HEADER_BYTES = 32,
	JOURNAL_HEADER_BYTES = 28,
	CELL_BYTES_MIN = 6,     /* a pointer to a cell, its two lengths, a record of one column */
	VALUE_MAX = 256 << 20,  /* longer values are not what such files hold */
};

void sqldb_put_uri(struct buf *b, const char *path, const char *parameters)
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
	int fd = file_open_regular(b.p, 0, NULL, NULL);
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
	if (!sqlvfs_register())
		mem_fail(0);
	sqldb_put_uri(&uri, d->path, parameters);
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
	bool ok = sqlite3_open_v2(uri.p, &d->db, flags, NULL) == SQLITE_OK;
	buf_release(&uri);
	if (!ok)
		return false;
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_extended_result_codes(d->db, 1);
	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	if (with_wal) {
		/* The index of the WAL is kept in memory instead of a file beside, and nothing is moved into the file. */
		sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		if (!exec(d, "PRAGMA locking_mode=EXCLUSIVE"))
			return false;
	}
	return exec(d, "PRAGMA cell_size_check=ON") && exec(d, "SELECT count(*) FROM sqlite_master");
}

static void sqldb_release(struct sqldb *d)
{
	mem_undo_end(&d->undo);
	close_library(d);
	sqldb_schema_free(d->schema);
	d->schema = NULL;
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

static int sqldb_fail(struct sqldb *d, struct err *e)
{
	if (e)
		*e = d->failed;
	return -1;
}

/* How many bytes the file's header says that there are, where they are more than there are; else 0. The header says so when the change counter is that
 * of the number of pages. https://www.sqlite.org/fileformat.html, 1.3. */
static uint64_t bytes_before_cut(const struct sqldb *d)
{
	enum { PAGE_BYTES = 16, CHANGES = 24, PAGES = 28, CHANGES_OF_PAGES = 92 };
	uint8_t h[100];
	if (d->fd < 0 || pread(d->fd, h, sizeof h, 0) != sizeof h || memcmp(h, "SQLite format 3", 16) != 0 || memcmp(h + CHANGES, h + CHANGES_OF_PAGES, 4) != 0)
		return 0;
	const uint8_t *n = h + PAGES;
	uint64_t page = (uint64_t)h[PAGE_BYTES] << 8 | h[PAGE_BYTES + 1], pages = (uint64_t)n[0] << 24 | (uint64_t)n[1] << 16 | (uint64_t)n[2] << 8 | n[3];
	uint64_t bytes = pages * (page == 1 ? 65536 : page);
	return bytes > d->file_bytes ? bytes : 0;
}

static int sqldb_refuse(struct sqldb *d, struct err *e)
{
	int code = sqlite3_errcode(d->db) & 0xff;
	bool io = code == SQLITE_CANTOPEN || code == SQLITE_PERM;
	uint64_t whole = code == SQLITE_CORRUPT || code == SQLITE_OK ? bytes_before_cut(d) : 0;
	sqldb_failed(d, sqlite3_extended_errcode(d->db), NULL);
	if (d->failed.code)
		sqldb_fail(d, e);
	else if (whole)
		err_set(e, ERR_FORMAT, "%s: the database is cut off: %llu of its %llu bytes are there; copy or export it again", d->path,
		        (unsigned long long)d->file_bytes, (unsigned long long)whole);
	else
		err_set(e, io ? ERR_IO : ERR_FORMAT, "%s: %s: %s", d->path, io ? "cannot read" : "not a sound SQLite database", sqlite3_errmsg(d->db));
	sqldb_release(d);
	return -1;
}

static int read_schema(struct sqldb *d, struct err *e)
{
	sqldb_schema_read(d);
	if (!d->failed.code)
		return 0;
	sqldb_release(d);
	return sqldb_fail(d, e);
}

static void sqldb_abandon(void *d)
{
	sqldb_release(d);
}

int sqldb_open(struct sqldb *d, const char *path, bool *stale, struct err *e)
{
	*d = (struct sqldb){.path = path};
	*stale = false;
	d->fd = file_open_regular(path, 0, NULL, e);
	mem_undo_begin(&d->undo, sqldb_abandon, d);
	struct stat st;
	int rc = d->fd < 0 ? -1 : fstat(d->fd, &st) == 0 ? 0 : err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
	if (rc < 0) {
		sqldb_release(d);
		return -1;
	}
	d->file_bytes = (uint64_t)st.st_size;
	bool wal = bytes_beside(path, "-wal") > WAL_HEADER_BYTES;
	if (wal && open_library(d, "?mode=ro&vfs=" SQLVFS, true)) {
		close(d->fd);
		d->fd = -1;
		return read_schema(d, e);
	}
	if (wal) {
		sqldb_failed(d, sqlite3_extended_errcode(d->db), NULL);
		if (d->failed.code)
			return sqldb_refuse(d, e);
		close_library(d);
	}
	*stale = wal || (bytes_beside(path, "-journal") > JOURNAL_HEADER_BYTES && journal_is_hot(path));
	/* Of a page that is cut, SQLite takes the rest for zeros. */
	if (!open_library(d, "?mode=ro&immutable=1&vfs=" SQLVFS, false) || bytes_before_cut(d))
		return sqldb_refuse(d, e);
	return read_schema(d, e);
}

int sqldb_close(struct sqldb *d, struct err *e)
{
	struct stat st;
	sqldb_failed(d, SQLITE_CORRUPT, NULL); /* a read that failed, whatever was made of it */
	if (!d->failed.code && d->fd >= 0 && fstat(d->fd, &st) == 0 && (uint64_t)st.st_size < d->file_bytes)
		err_set(&d->failed, ERR_IO, "%s: cannot read: the file has become shorter meanwhile", d->path);
	sqldb_release(d);
	return d->failed.code ? sqldb_fail(d, e) : 0;
}

static void add_line(void *names, const char *table)
{
	buf_cstr(names, table);
	buf_char(names, '\n');
}

int sqldb_list(const char *path, struct buf *names, struct err *e)
{
	struct sqldb d;
	struct err why = {0};
	bool stale;
	if (sqldb_open(&d, path, &stale, &why) < 0) {
		if (why.code == ERR_FORMAT)
			return 1;
		*e = why;
		return -1;
	}
	sqldb_each_table(&d, add_line, names);
	return sqldb_close(&d, e);
}

/* A statement about `table`, whose name is bound to ?1 if there is one; NULL when it cannot be prepared. */
static sqlite3_stmt *sqldb_prepare(struct sqldb *d, const char *table, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(st))
		rc = sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		return st;
	sqldb_failed(d, rc, table);
	sqlite3_finalize(st);
	return NULL;
}

/* Its first value; `absent` when there is none. */
static int64_t sqldb_ask(struct sqldb *d, const char *table, const char *sql, int64_t absent)
{
	sqlite3_stmt *st = sqldb_prepare(d, table, sql);
	int64_t v = absent;
	int rc = st ? sqlite3_step(st) : SQLITE_DONE;
	if (rc == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		v = sqlite3_column_int64(st, 0);
	sqldb_failed(d, rc, table);
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

static int64_t ask_table(struct sqldb *d, const char *before, const char *table, const char *after, int64_t absent)
{
	if (!sqldb_has_table(d, table) || d->failed.code)
		return absent;
	struct buf sql = {0};
	put_sql(&sql, before, table, after);
	int64_t v = sqldb_ask(d, table, sql.p, absent);
	buf_release(&sql);
	return v;
}

int64_t sqldb_count(struct sqldb *d, const char *table)
{
	return ask_table(d, "SELECT count(*) FROM ", table, "", -1);
}

int64_t sqldb_max_rowid(struct sqldb *d, const char *table)
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

static bool read_plan(struct sqldb *d, const char *table, const char *const *columns, int n, struct plan *p)
{
	sqlite3_stmt *st = sqldb_prepare(d, table, "SELECT cid, name, type, dflt_value, pk, hidden FROM pragma_table_xinfo(?1)");
	if (!st)
		return false;
	*p = (struct plan){.place = NEW_ARRAY_RAW(n ? n : 1, int), .rowid = -1, .plain = true};
	for (int k = 0; k < n; k++)
		p->place[k] = -1;
	int keys = 0, rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = sqldb_text(d, st, 1, table), *type = sqldb_text(d, st, 2, table);
		bool computed = sqlite3_column_int(st, 5) != 0;
		int cid = sqlite3_column_int(st, 0);
		p->plain &= !computed && sqlite3_column_type(st, 3) == SQLITE_NULL;
		if (sqlite3_column_int(st, 4) && keys++ == 0 && type && sqlite3_stricmp(type, "INTEGER") == 0)
			p->rowid = cid;
		for (int k = 0; k < n && !computed; k++)
			if (name && sqlite3_stricmp(name, columns[k]) == 0)
				p->place[k] = cid;
	}
	sqldb_failed(d, rc, table);
	sqlite3_finalize(st);
	/* A key with an index of its own is not the row id. */
	if (keys != 1 || sqldb_ask(d, table, "SELECT 1 FROM pragma_index_list(?1) WHERE origin='pk'", 0) == 1)
		p->rowid = -1;
	return true;
}

static bool has_rowid(struct sqldb *d, const char *table)
{
	struct buf sql = {0};
	put_sql(&sql, "SELECT _rowid_ FROM ", table, " LIMIT 0");
	sqlite3_stmt *st = sqldb_prepare(d, table, sql.p);
	buf_release(&sql);
	sqlite3_finalize(st);
	return st != NULL;
}

/* The index would be shorter to read, but its order is not that of the rows. */
static sqlite3_stmt *select_columns(struct sqldb *d, const char *table, const char *const *columns, int n, const struct plan *p)
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
	sqlite3_stmt *st = sqldb_prepare(d, table, sql.p);
	buf_release(&sql);
	buf_release(&from);
	return st;
}

int sqlscan_open(struct sqlscan *s, struct sqldb *d, const char *table, const char *const *columns, struct err *e)
{
	*s = (struct sqlscan){.table = table, .db = d};
	if (d->failed.code)
		return sqldb_fail(d, e);
	while (columns[s->n])
		s->n++;
	int64_t root = sqldb_root_page(d, table);
	if (root <= 0)
		return err_set(e, ERR_FORMAT, "%s: has no table %s", d->path, table);
	struct plan p;
	if (!read_plan(d, table, columns, s->n, &p))
		return d->failed.code ? sqldb_fail(d, e) : err_set(e, ERR_FORMAT, "%s: the columns of table %s cannot be read: %s", d->path, table, sqlite3_errmsg(d->db));
	if (d->fd >= 0 && p.plain && root <= UINT32_MAX && has_rowid(d, table))
		s->direct = sqlpage_open(d->fd, (uint32_t)root, p.place, s->n, p.rowid);
	if (!s->direct) {
		s->st = select_columns(d, table, columns, s->n, &p);
		s->v = s->cell = NEW_ARRAY(s->n ? s->n : 1, struct sqlpage_value);
	}
	mem_free(p.place);
	if ((s->direct || s->st) && !d->failed.code)
		return 0;
	if (d->failed.code)
		sqldb_fail(d, e);
	else
		err_set(e, ERR_FORMAT, "%s: table %s cannot be read: %s", d->path, table, sqlite3_errmsg(d->db));
	sqlscan_close(s);
	return -1;
}

/* Bytes without an address are none, but of a text, or after an allocation failed. */
static void copy_cell(const struct sqlscan *s, int c, struct sqlpage_value *v)
{
	sqlite3_stmt *st = s->st;
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
		v->s.p = sqldb_text(s->db, st, c, s->table); /* before its length is asked for */
		v->s.n = v->s.p ? (size_t)sqlite3_column_bytes(st, c) : 0;
		break;
	case SQLITE_BLOB:
		v->type = SQLPAGE_BLOB;
		v->s.p = sqlite3_column_blob(st, c);
		v->s.n = v->s.p ? (size_t)sqlite3_column_bytes(st, c) : 0;
		if (!v->s.p)
			sqldb_failed(s->db, sqlite3_extended_errcode(s->db->db), s->table);
		break;
	default:
		v->type = SQLPAGE_NULL;
	}
}

/* Why the direct reader has no further row. */
static bool end_direct(struct sqlscan *s)
{
	const char *why = sqlpage_failed(s->direct);
	s->damaged = sqlpage_damaged(s->direct);
	if (why && !s->db->failed.code)
		err_set(&s->db->failed, ERR_IO, "%s: cannot read: %s", s->db->path, why);
	return false;
}

static bool end_library(struct sqlscan *s, int rc)
{
	s->damaged = s->damaged || rc != SQLITE_DONE;
	sqldb_failed(s->db, rc, s->table);
	sqlite3_finalize(s->st);
	s->st = NULL;
	return false;
}

bool sqlscan_next(struct sqlscan *s)
{
	if (s->direct) {
		s->v = sqlpage_next(s->direct);
		s->row += s->v != NULL;
		return s->v ? true : end_direct(s);
	}
	int rc = s->st ? sqlite3_step(s->st) : SQLITE_DONE;
	if (rc != SQLITE_ROW)
		return end_library(s, rc);
	for (int c = 0; c < s->n; c++)
		copy_cell(s, c, &s->cell[c]);
	if (s->db->failed.code)
		return end_library(s, SQLITE_NOMEM);
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
