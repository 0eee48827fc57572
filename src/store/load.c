#include "store/load.h"

#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/sqldb.h"
#include "io/sqlmem.h"
#include "io/sqlvfs.h"
#include "store/load_work.h"
#include "store/save_work.h"

bool load_sniff(struct str head)
{
	if (head.n < 100 || memcmp(head.p, "SQLite format 3", 16) != 0)
		return false;
	const unsigned char *id = (const unsigned char *)head.p + 68;
	return ((uint32_t)id[0] << 24 | id[1] << 16 | id[2] << 8 | id[3]) == SAVE_APPLICATION_ID;
}

static int pragma_int(struct load *l, const char *sql, int *v)
{
	sqlite3_stmt *st = NULL;
	int rc = -1;
	if (sqlite3_prepare_v2(l->db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
		*v = sqlite3_column_int(st, 0);
		rc = 0;
	}
	sqlite3_finalize(st);
	return rc ? load_sqlite_failed(l) : 0;
}

int load_check_version(int64_t version, const char *path, struct err *e)
{
	if (version > SAVE_VERSION)
		return err_set(e, ERR_FORMAT,
		               "%s: written by a newer opscope (file version %lld, this opscope reads up to %d); import the trace "
		               "again or use the newer opscope", path, (long long)version, SAVE_VERSION);
	if (version < SAVE_VERSION_OLDEST)
		return err_set(e, ERR_FORMAT, "%s: file version %lld is too old, this opscope reads %d to %d; import the trace again", path,
		               (long long)version, SAVE_VERSION_OLDEST, SAVE_VERSION);
	return 0;
}

/* Our tables must be plain tables: a view of that name could run for ever. */
static int check_schema(struct load *l)
{
	int plain = 0;
	if (pragma_int(l, "SELECT count(*) FROM sqlite_schema WHERE type='table' AND rootpage>0 AND name IN"
	                  " ('meta','diag','store_table','store_chunk')", &plain))
		return -1;
	return plain == 4 ? 0 : load_damaged(l, "a table is missing");
}

static int load_open_db(struct load *l)
{
	struct buf uri = {0};
	if (!sqlvfs_register())
		mem_fail(0);
	sqldb_put_uri(&uri, l->path, "?immutable=1&vfs=" SQLVFS);
	int rc = sqlmem(sqlite3_open_v2(uri.p, &l->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL));
	buf_release(&uri);
	if (rc != SQLITE_OK)
		return load_sqlite_failed(l);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	int id = 0, pages = 0, page_bytes = 0;
	if (pragma_int(l, "PRAGMA application_id", &id) || pragma_int(l, "PRAGMA user_version", &l->version) ||
	    pragma_int(l, "PRAGMA page_count", &pages) || pragma_int(l, "PRAGMA page_size", &page_bytes))
		return -1;
	if (id != SAVE_APPLICATION_ID)
		return err_set(l->e, ERR_FORMAT, "%s: a SQLite file, but not one that opscope wrote", l->path);
	if (load_check_version(l->version, l->path, l->e))
		return -1;
	l->file_bytes = (uint64_t)pages * (uint64_t)page_bytes;
	struct stat st;
	if (stat(l->path, &st) == 0 && (uint64_t)st.st_size < l->file_bytes)
		return load_damaged(l, "%lld of %llu bytes are there", (long long)st.st_size, (unsigned long long)l->file_bytes);
	return check_schema(l);
}

/* Analysis is done wholly or not at all: its columns depend on each other. */
static void forget_derived(struct profile *p)
{
	p->passes_done = 0;
	for (int t = 0; t < STORE_N_TABLES; t++)
		for (unsigned c = 0; c < store_tables[t].n_columns; c++)
			if (store_tables[t].columns[c].group == DERIVED) {
				void **data = rows_column(profile_table(p, t), &store_tables[t].columns[c]);
				mem_free(*data);
				*data = NULL;
			}
}

static int load_read_meta(struct load *l)
{
	struct profile *p = l->p;
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(l->db, "SELECT key, value FROM meta", -1, &st, NULL) != SQLITE_OK)
		return load_sqlite_failed(l);
	int rc;
	int64_t order = 0;
	bool recorder = false;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct str key = load_text_of(l, st, 0);
		if (str_eq(key, STR("input")) || str_eq(key, STR("format"))) {
			struct str v = arena_str(&p->arena, load_text_of(l, st, 1));
			*(str_eq(key, STR("input")) ? &p->input_path : &p->format) = v;
		} else if (str_eq(key, STR("input_bytes"))) {
			p->input_bytes = (uint64_t)sqlite3_column_int64(st, 1);
		} else if (str_eq(key, STR("file_bytes"))) {
			p->file_bytes = (uint64_t)sqlite3_column_int64(st, 1);
		} else if (str_eq(key, STR("passes"))) {
			p->passes_done = (unsigned)sqlite3_column_int64(st, 1) & PASSES_IN_COLUMNS;
		} else if (str_eq(key, STR("durations_only"))) {
			p->durations_only = sqlite3_column_int64(st, 1) != 0;
		} else if (str_eq(key, STR("zero_is_start"))) {
			p->zero_is_start = sqlite3_column_int64(st, 1) != 0;
		} else if (str_eq(key, STR("recorder"))) {
			int64_t r = sqlite3_column_int64(st, 1);
			recorder = true;
			p->recorder = r == RECORDER_NVIDIA || r == RECORDER_PYPROF ? (enum recorder)r : RECORDER_TORCH;
		} else if (str_eq(key, STR("byte_order"))) {
			order = sqlite3_column_int64(st, 1);
		}
	}
	sqlite3_finalize(st);
	if (rc != SQLITE_DONE)
		return load_sqlite_failed(l);
	if (!recorder) /* a file from before this was kept */
		p->recorder = p->durations_only ? RECORDER_PYPROF : p->zero_is_start ? RECORDER_NVIDIA : RECORDER_TORCH;
	return order == __BYTE_ORDER__ ? 0 : load_damaged(l, "it is of a machine with another byte order");
}

/* More kinds than there can be in a real one would make each look-up slow. */
enum { MAX_DIAGS = 4096 };

static int read_diags(struct load *l)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(l->db, "SELECT kind, level, count, first_offset, message FROM diag", -1, &st, NULL) != SQLITE_OK)
		return load_sqlite_failed(l);
	int rc;
	bool good = true;
	while (good && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *kind = load_text_of(l, st, 0).p, *text = load_text_of(l, st, 4).p;
		int64_t level = sqlite3_column_int64(st, 1), count = sqlite3_column_int64(st, 2);
		good = kind && text && level >= DIAG_NOTE && level <= DIAG_LOSS && count > 0 && l->p->diags.n < MAX_DIAGS;
		if (good)
			diag_add_n(&l->p->diags, kind, (enum diag_level)level, (uint64_t)count, sqlite3_column_int64(st, 3), "%s",
			           text);
	}
	sqlite3_finalize(st);
	if (!good)
		return load_damaged(l, "its list of diagnostics");
	return rc == SQLITE_DONE ? 0 : load_sqlite_failed(l);
}

static int load_read_all(struct load *l)
{
	bool derived = true;
	if (load_open_db(l) || load_read_meta(l) || read_diags(l) || load_list_chunks(l) || load_read_strings(l))
		return -1;
	for (int t = 0; t < STORE_N_TABLES; t++)
		if (load_read_table(l, t, &derived))
			return -1;
	if (!derived || l->p->passes_done != PASSES_IN_COLUMNS)
		forget_derived(l->p);
	else
		l->p->left_bytes += l->left_derived;
	if (l->no_memory)
		return load_out_of_memory(l);
	if (load_aggregations(l->db, l->path, l->p, l->e))
		return -1;
	l->p->reopened = true;
	l->p->reopened_version = l->version;
	l->p->reopened_bytes = l->file_bytes;
	struct err why;
	if (load_check(l->p, &why))
		return load_damaged(l, "%s", why.msg);
	profile_find_arg_keys(l->p);
	profile_join_devices(l->p);
	return 0;
}

static void close_db(void *load)
{
	struct load *l = load;
	mem_undo_end(&l->undo);
	sqlite3_blob_close(l->blob);
	sqlmem_close(l->db);
}

int load_aggregation_list(const char *path, struct profile *p, struct err *e)
{
	struct load l = {.path = path, .p = p, .e = e};
	mem_undo_begin(&l.undo, close_db, &l);
	int rc = load_open_db(&l) || load_aggregations(l.db, path, p, e) ? -1 : 0;
	close_db(&l);
	return rc;
}

int load_fact(const char *path, const char *key, struct buf *out, struct err *e)
{
	struct load l = {.path = path, .e = e};
	sqlite3_stmt *st = NULL;
	mem_undo_begin(&l.undo, close_db, &l);
	int rc = load_open_db(&l);
	if (!rc && sqlite3_prepare_v2(l.db, "SELECT value FROM meta WHERE key=?1", -1, &st, NULL) != SQLITE_OK)
		rc = load_sqlite_failed(&l);
	if (!rc) {
		sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
		if (sqlite3_step(st) == SQLITE_ROW)
			buf_str(out, load_text_of(&l, st, 0));
	}
	sqlite3_finalize(st);
	close_db(&l);
	return rc;
}

int load_profile(const char *path, struct profile *p, struct err *e)
{
	struct load l = {.path = path, .p = p, .e = e};
	mem_undo_begin(&l.undo, close_db, &l);
	intern_init(&l.names);
	int rc = load_read_all(&l);
	if (rc)
		for (int t = 0; t < STORE_N_TABLES; t++) /* rows.n was not set where a table was left half-way */
			rows_release(profile_table(p, t), &store_tables[t]);
	close_db(&l);
	intern_release(&l.names);
	mem_free(l.chunk);
	buf_release(&l.packed);
	return rc;
}
