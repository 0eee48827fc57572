#include "store/save.h"

#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "io/sqlfail.h"
#include "io/sqlmem.h"
#include "store/save_work.h"

/* Each page is one read when loading, but each table takes at least one. */
static int page_bytes(uint64_t file_bytes)
{
	return file_bytes >= 16 << 20 ? 65536 : file_bytes >= 1 << 20 ? 16384 : 4096;
}

int save_fail(struct save *s, struct err *e)
{
	int code = sqlite3_extended_errcode(s->db), os = sqlite3_system_errno(s->db);
	const char *why = code == SQLITE_FULL ? "no space left" : os ? strerror(os) : sqlite3_errmsg(s->db);
	enum err_code failed = sqlfail(s->db, code, &why);
	return err_set(e, failed ? failed : ERR_IO, "%s: cannot write: %s", s->file.path, why);
}

int save_open(struct save *s, struct err *e)
{
	if (sqlite3_open_v2(s->file.temp, &s->db, SQLITE_OPEN_READWRITE, SAVE_VFS) != SQLITE_OK)
		return save_fail(s, e);
	if (sqlite3_db_readonly(s->db, "main") == 1) /* the library's way out, and it keeps the reason to itself */
		return err_set(e, ERR_IO, "%s: cannot write: unable to open database file for writing", s->file.path);
	return 0;
}

int save_run(struct save *s, const char *sql, struct err *e)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : save_fail(s, e);
}

sqlite3_stmt *save_prepare(struct save *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		save_fail(s, e);
	return st;
}

int save_step(struct save *s, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_step(st);
	if (rc != SQLITE_DONE)
		return save_fail(s, e);
	sqlite3_reset(st);
	return 0;
}

void save_bind_str(sqlite3_stmt *st, int i, struct str v)
{
	sqlite3_bind_text64(st, i, v.p ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

/* A new database with these numbers in its head; `tables` makes its tables. */
static int save_open_db(struct save *s, uint64_t big, int id, int version, const char *tables, struct err *e)
{
	if (save_open(s, e))
		return -1;
	char sql[160];
	snprintf(sql, sizeof sql, "PRAGMA page_size=%d; PRAGMA application_id=%d; PRAGMA user_version=%d", page_bytes(big), id, version);
	return save_run(s,
	           "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
	           "PRAGMA secure_delete=OFF", e) || save_run(s, sql, e) || save_run(s, "BEGIN", e) || save_run(s, tables, e) ? -1 : 0;
}

static void save_abandon(void *save)
{
	struct save *s = save;
	sqlmem_close(s->db);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
}

void save_undo_begin(struct save *s)
{
	mem_undo_begin(&s->undo, save_abandon, s);
}

void save_release(struct save *s)
{
	mem_undo_end(&s->undo);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	mem_free(s);
}

struct save *save_begin_tables(const char *path, mode_t mode, uint64_t big, int id, int version, const char *tables, struct err *e)
{
	struct save *s = NEW(struct save);
	s->lock_fd = -1;
	save_undo_begin(s);
	if (atomic_begin_as(&s->file, path, mode, e)) {
		save_release(s);
		return NULL;
	}
	if (save_open_db(s, big, id, version, tables, e)) {
		save_abort(s);
		return NULL;
	}
	return s;
}

struct save *save_begin(const char *path, mode_t mode, uint64_t big, struct err *e)
{
	return save_begin_tables(path, mode, big, SAVE_APPLICATION_ID, SAVE_VERSION,
	           SAVE_META ";"
	           "CREATE TABLE diag(kind TEXT, level INTEGER, count INTEGER, first_offset INTEGER, message TEXT);"
	           "CREATE TABLE store_table(name TEXT, rows INTEGER);"
	           "CREATE TABLE store_chunk(id INTEGER PRIMARY KEY, tbl TEXT, col TEXT, seq INTEGER, size INTEGER,"
	           " checksum INTEGER, data BLOB)", e);
}

static int save_meta(struct save *s, const struct profile *p, struct err *e)
{
	enum { N_TEXTS = 5 };
	struct str job = STR("");
	profile_meta(p, "distributedInfo", &job);
	const struct { const char *key; struct str text; int64_t number; } facts[] = {
		{"opscope", STR(OPSCOPE_VERSION), 0},
		{"opscope_current", STR(OPSCOPE_VERSION), 0},
		{"input", p->input_path, 0},
		{"format", p->format, 0},
		{"distributedInfo", job, 0},
		{"input_bytes", {0}, (int64_t)p->input_bytes},
		{"file_bytes", {0}, (int64_t)p->file_bytes},
		{"passes", {0}, p->passes_done & PASSES_IN_COLUMNS},
		{"durations_only", {0}, p->durations_only},
		{"zero_is_start", {0}, p->zero_is_start},
		{"recorder", {0}, p->recorder},
		{"byte_order", {0}, __BYTE_ORDER__},
		{"version_original", {0}, SAVE_VERSION},
	};
	sqlite3_stmt *st = save_prepare(s, "INSERT INTO meta VALUES(?1, ?2)", e);
	int rc = st ? 0 : -1;
	for (size_t i = 0; !rc && i < sizeof facts / sizeof facts[0]; i++) {
		sqlite3_bind_text(st, 1, facts[i].key, -1, SQLITE_STATIC);
		if (i < N_TEXTS)
			save_bind_str(st, 2, facts[i].text);
		else
			sqlite3_bind_int64(st, 2, facts[i].number);
		rc = save_step(s, st, e);
	}
	sqlite3_finalize(st);
	return rc;
}

int save_fact(struct save *s, const char *key, struct str text, int64_t number, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)", e);
	if (!st)
		return -1;
	save_bind_str(st, 1, str_from(key));
	if (text.p)
		save_bind_str(st, 2, text);
	else
		sqlite3_bind_int64(st, 2, number);
	int rc = save_step(s, st, e);
	sqlite3_finalize(st);
	return rc;
}

static int save_diags(struct save *s, const struct diags *d, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "INSERT INTO diag VALUES(?1, ?2, ?3, ?4, ?5)", e);
	int rc = st ? 0 : -1;
	for (unsigned i = 0; !rc && i < d->n; i++) {
		const struct diag_entry *g = &d->entry[i];
		save_bind_str(st, 1, str_from(g->kind));
		sqlite3_bind_int(st, 2, (int)g->level);
		sqlite3_bind_int64(st, 3, (int64_t)g->count);
		sqlite3_bind_int64(st, 4, g->first_offset);
		save_bind_str(st, 5, g->message);
		rc = save_step(s, st, e);
	}
	sqlite3_finalize(st);
	return rc;
}

static int save_rows_count(struct save *s, const char *name, uint32_t n, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "INSERT INTO store_table VALUES(?1, ?2)", e);
	if (!st)
		return -1;
	save_bind_str(st, 1, str_from(name));
	sqlite3_bind_int64(st, 2, n);
	int rc = save_step(s, st, e);
	sqlite3_finalize(st);
	return rc;
}

/* `n` elements of `size` bytes as chunks; none for n = 0. */
static int save_column(struct save *s, const char *table, const char *column, const void *data, uint64_t n,
                       unsigned size, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "INSERT INTO store_chunk VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6)", e);
	int rc = st ? 0 : -1;
	uint64_t bytes = n * size;
	for (uint64_t at = 0, seq = 0; !rc && at < bytes; at += SAVE_CHUNK, seq++) {
		const char *p = (const char *)data + at;
		uint64_t piece = bytes - at < SAVE_CHUNK ? bytes - at : SAVE_CHUNK;
		save_bind_str(st, 1, str_from(table));
		save_bind_str(st, 2, str_from(column));
		sqlite3_bind_int64(st, 3, (int64_t)seq);
		sqlite3_bind_int(st, 4, (int)size);
		sqlite3_bind_int64(st, 5, (int64_t)hash_bytes(p, piece));
		sqlite3_bind_blob64(st, 6, p, piece, SQLITE_STATIC);
		rc = save_step(s, st, e);
	}
	sqlite3_finalize(st);
	return rc;
}

/* The pool is written as one run of bytes; in memory it is scattered over the arena's chunks. */
static int save_strings(struct save *s, const struct intern *t, struct err *e)
{
	uint32_t *length = NEW_ARRAY_RAW(t->n, uint32_t), *hash = NEW_ARRAY_RAW(t->n, uint32_t);
	struct buf pool = {0};
	for (uint32_t i = 0; i < t->n; i++) {
		length[i] = t->entry[i].n;
		hash[i] = t->entry[i].hash;
		buf_put(&pool, t->entry[i].p, (size_t)length[i] + 1);
	}
	int rc = save_rows_count(s, SAVE_STRINGS, t->n, e) ||
	         save_column(s, SAVE_STRINGS, "length", length, t->n, sizeof *length, e) ||
	         save_column(s, SAVE_STRINGS, "hash", hash, t->n, sizeof *hash, e) ||
	         save_column(s, SAVE_STRINGS, "bytes", pool.p, pool.n, 1, e);
	buf_release(&pool);
	mem_free(length);
	mem_free(hash);
	return rc ? -1 : 0;
}

int save_profile(struct save *s, const struct profile *p, struct err *e)
{
	if (save_meta(s, p, e) || save_diags(s, &p->diags, e) || save_strings(s, &p->strings, e))
		return -1;
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const struct store_table *desc = &store_tables[t];
		const void *table = profile_table(p, t);
		uint32_t n = ((const struct rows *)table)->n;
		if (save_rows_count(s, desc->name, n, e))
			return -1;
		for (unsigned c = 0; c < desc->n_columns; c++) {
			const struct store_column *col = &desc->columns[c];
			const void *data = *rows_column(table, col);
			if (data && save_column(s, desc->name, col->name, data, n, col->size, e))
				return -1;
		}
	}
	return 0;
}

void save_abort(struct save *s)
{
	sqlite3_close(s->db);
	atomic_abort(&s->file);
	save_release(s);
}

int save_commit(struct save *s, struct err *e)
{
	int rc = save_run(s, "COMMIT", e);
	if (!rc)
		rc = sqlite3_close(s->db) == SQLITE_OK ? 0 : save_fail(s, e);
	if (!rc)
		s->db = NULL;
	if (rc) {
		save_abort(s);
		return -1;
	}
	rc = atomic_commit(&s->file, e);
	save_release(s);
	return rc;
}
