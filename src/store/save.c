#include "store/save.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/sqlmem.h"
#include "store/save_work.h"

/* Each page is one read when loading, but each of a hundred tables takes at least one. The columns take a tenth of what they take in memory. */
static int page_bytes(uint64_t profile_bytes)
{
	return profile_bytes >= 1 << 30 ? 16384 : profile_bytes >= 32 << 20 ? 8192 : 4096;
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
	           " checksum INTEGER, data BLOB, packing INTEGER)", e);
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

int save_profile(struct save *s, const struct profile *p, struct err *e)
{
	return save_meta(s, p, e) || save_diags(s, &p->diags, e) || save_strings(s, &p->strings, e) || save_tables(s, p, e) ? -1 : 0;
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
