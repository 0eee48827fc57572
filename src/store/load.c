#include "store/load.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "io/sqldb.h"
#include "io/sqlfail.h"
#include "io/sqlmem.h"
#include "io/sqlvfs.h"
#include "store/save_work.h"

/* A row of store_chunk without its data. */
struct chunk {
	int64_t id, seq, size, checksum, bytes;
	uint32_t table, column; /* of the interner `names` */
};

struct load {
	sqlite3 *db;
	sqlite3_blob *blob;
	struct chunk *chunk;
	uint32_t n_chunks, cap_chunks;
	struct intern names;
	const char *path;
	uint64_t file_bytes;
	bool no_memory;     /* for a text that the file has: it read as if it were not there */
	struct profile *p;
	struct err *e;
	struct mem_undo undo;
};

static int load_damaged(struct load *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int no_memory(struct load *l)
{
	return err_set(l->e, ERR_NOMEM, "%s: out of memory while it was read", l->path);
}

static int load_damaged(struct load *l, const char *fmt, ...)
{
	if (l->no_memory)
		return no_memory(l);
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return err_set(l->e, ERR_FORMAT, "%s: the .opscope file is damaged: %s; import the trace again", l->path, what);
}

static int sqlite_failed(struct load *l)
{
	const char *why = sqlite3_errmsg(l->db);
	int code = sqlite3_extended_errcode(l->db), kind = code & 0xff;
	enum err_code failed = sqlfail(l->db, code, &why);
	if (failed == ERR_NOMEM)
		return no_memory(l);
	if (failed == ERR_IO || kind == SQLITE_CANTOPEN || kind == SQLITE_PERM)
		return err_set(l->e, ERR_IO, "%s: cannot read: %s", l->path, why);
	return load_damaged(l, "%s", why);
}

/* A text of the current row. */
static struct str load_text_of(struct load *l, sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	l->no_memory |= !text && sqlite3_errcode(l->db) == SQLITE_NOMEM;
	return (struct str){text, text ? (size_t)sqlite3_column_bytes(st, column) : 0};
}

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
	return rc ? sqlite_failed(l) : 0;
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

uint64_t load_content(uint64_t content, int64_t id, int64_t checksum)
{
	uint64_t all[] = {content, (uint64_t)id, (uint64_t)checksum};
	return hash_bytes(all, sizeof all);
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
		return sqlite_failed(l);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	int id = 0, version = 0, pages = 0, page_bytes = 0;
	if (pragma_int(l, "PRAGMA application_id", &id) || pragma_int(l, "PRAGMA user_version", &version) ||
	    pragma_int(l, "PRAGMA page_count", &pages) || pragma_int(l, "PRAGMA page_size", &page_bytes))
		return -1;
	if (id != SAVE_APPLICATION_ID)
		return err_set(l->e, ERR_FORMAT, "%s: a SQLite file, but not one that opscope wrote", l->path);
	if (load_check_version(version, l->path, l->e))
		return -1;
	l->file_bytes = (uint64_t)pages * (uint64_t)page_bytes;
	struct stat st;
	if (stat(l->path, &st) == 0 && (uint64_t)st.st_size < l->file_bytes)
		return load_damaged(l, "%lld of %llu bytes are there", (long long)st.st_size, (unsigned long long)l->file_bytes);
	return check_schema(l);
}

/* The number of rows of a table, -1 with *e set when it is not known. */
static int64_t rows_count(struct load *l, const char *name)
{
	sqlite3_stmt *st = NULL;
	int64_t n = 0; /* a table that an older opscope did not have is empty */
	if (sqlite3_prepare_v2(l->db, "SELECT rows FROM store_table WHERE name=?1", -1, &st, NULL) != SQLITE_OK)
		return sqlite_failed(l);
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		n = sqlite_failed(l);
	else if (n < 0 || n >= ROW_NONE)
		n = load_damaged(l, "table %s has %lld rows", name, (long long)n);
	sqlite3_finalize(st);
	return n;
}

/* All chunks in the order in which they were written: one scan that reads no data. */
static int load_list_chunks(struct load *l)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(l->db, "SELECT id, seq, size, checksum, length(data), tbl, col FROM store_chunk ORDER BY id",
	                       -1, &st, NULL) != SQLITE_OK)
		return sqlite_failed(l);
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		MEM_GROW(l->chunk, l->cap_chunks, l->n_chunks + 1);
		int64_t v[5];
		for (int i = 0; i < 5; i++)
			v[i] = sqlite3_column_type(st, i) == SQLITE_INTEGER ? sqlite3_column_int64(st, i) : -1;
		l->chunk[l->n_chunks++] = (struct chunk){
			.id = v[0], .seq = v[1], .size = v[2], .checksum = v[3], .bytes = v[4],
			.table = intern_str(&l->names, load_text_of(l, st, 5)),
			.column = intern_str(&l->names, load_text_of(l, st, 6)),
		};
	}
	sqlite3_finalize(st);
	for (uint32_t i = 0; i < l->n_chunks; i++)
		l->p->content = load_content(l->p->content, l->chunk[i].id, l->chunk[i].checksum);
	return rc == SQLITE_DONE ? 0 : sqlite_failed(l);
}

static int read_chunk(struct load *l, const struct chunk *c, void *out)
{
	int rc = l->blob ? sqlite3_blob_reopen(l->blob, c->id)
	                 : sqlite3_blob_open(l->db, "main", "store_chunk", "data", c->id, 0, &l->blob);
	if (rc != SQLITE_OK)
		return sqlite_failed(l);
	if (sqlite3_blob_bytes(l->blob) != c->bytes)
		return load_damaged(l, "chunk %lld has another length than its row says", (long long)c->id);
	if (c->bytes && sqlite3_blob_read(l->blob, out, (int)c->bytes, 0) != SQLITE_OK)
		return sqlite_failed(l);
	if (hash_bytes(out, (size_t)c->bytes) != (uint64_t)c->checksum)
		return load_damaged(l, "chunk %lld does not match its checksum", (long long)c->id);
	return 0;
}

/* Fills `out` (n elements of `size` bytes) from the chunks of a column; *found is false when there are none although
 * there should be. */
static int read_column(struct load *l, const char *table, const char *column, void *out, uint64_t n, unsigned size,
                       bool *found)
{
	uint32_t table_id = intern_find(&l->names, str_from(table)), column_id = intern_find(&l->names, str_from(column));
	uint64_t bytes = n * size, at = 0;
	int64_t seq = 0;
	for (uint32_t i = 0; i < l->n_chunks; i++) {
		const struct chunk *c = &l->chunk[i];
		if (c->table != table_id || c->column != column_id)
			continue;
		if (c->seq != seq || c->size != size || c->bytes < 0 || (uint64_t)c->bytes > bytes - at)
			return load_damaged(l, "the chunks of column %s.%s do not fit its table", table, column);
		if (read_chunk(l, c, (char *)out + at))
			return -1;
		at += (uint64_t)c->bytes;
		seq++;
	}
	*found = seq > 0 || !bytes;
	return *found && at != bytes ? load_damaged(l, "column %s.%s is shorter than its table", table, column) : 0;
}

/* Memory that is about to be filled. Met page by page, its first use would cost more than all the reading: big columns ask
 * for big pages, and for all of them at once. */
static void *alloc_to_fill(uint64_t n, unsigned size)
{
	enum { HUGE_PAGE = 2 << 20, PAGE = 4096, WORTH_IT = 1 << 20 };
	uint64_t bytes = n * size;
	void *p = NULL;
	if (bytes < WORTH_IT || posix_memalign(&p, bytes < HUGE_PAGE ? PAGE : HUGE_PAGE, bytes) != 0)
		return mem_alloc(n ? n : 1, size);
	madvise(p, bytes & ~(uint64_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	madvise(p, bytes & ~(uint64_t)(PAGE - 1), MADV_POPULATE_WRITE);
#endif
	return p;
}

/* Memory for a column of a table that says it has n rows. What is in the file cannot be longer than the file. */
static void *column_alloc(struct load *l, const char *table, uint64_t n, unsigned size)
{
	if (n * size > l->file_bytes) {
		load_damaged(l, "table %s claims more rows than the file can hold", table);
		return NULL;
	}
	return alloc_to_fill(n, size);
}

static int read_strings(struct load *l)
{
	int64_t n = rows_count(l, SAVE_STRINGS);
	if (n < 0)
		return -1;
	uint32_t *length = column_alloc(l, SAVE_STRINGS, (uint64_t)n, sizeof *length);
	uint32_t *hash = length ? column_alloc(l, SAVE_STRINGS, (uint64_t)n, sizeof *hash) : NULL;
	bool found[3] = {false, false, true};
	int rc = hash ? 0 : -1;
	if (!rc)
		rc = read_column(l, SAVE_STRINGS, "length", length, (uint64_t)n, sizeof *length, &found[0]) ||
		     read_column(l, SAVE_STRINGS, "hash", hash, (uint64_t)n, sizeof *hash, &found[1]);
	uint64_t total = 0;
	for (int64_t i = 0; !rc && found[0] && i < n; i++)
		total += (uint64_t)length[i] + 1;
	if (!rc && total > l->file_bytes)
		rc = load_damaged(l, "its strings claim to be longer than the file");
	struct intern *t = &l->p->strings;
	char *pool = rc ? NULL : arena_bytes(&t->bytes, total);
	if (!rc)
		rc = read_column(l, SAVE_STRINGS, "bytes", pool, total, 1, &found[2]);
	if (!rc && !(found[0] && found[1] && found[2] && intern_load(t, (uint32_t)n, length, hash, pool, total)))
		rc = load_damaged(l, "its strings do not fit together");
	mem_free(length);
	mem_free(hash);
	return rc ? -1 : 0;
}

static int load_read_table(struct load *l, enum store_table_id id, bool *derived)
{
	const struct store_table *desc = &store_tables[id];
	void *table = profile_table(l->p, id);
	int64_t n = rows_count(l, desc->name);
	if (n < 0)
		return -1;
	for (unsigned c = 0; c < desc->n_columns; c++) {
		const struct store_column *col = &desc->columns[c];
		void **data = rows_column(table, col);
		bool found;
		*data = column_alloc(l, desc->name, (uint64_t)n, col->size);
		if (!*data || read_column(l, desc->name, col->name, *data, (uint64_t)n, col->size, &found))
			return -1;
		if (!found && col->group == DERIVED)
			*derived = false;
		if (col->group == SPARSE && (!found || !n)) { /* without rows none states a value */
			mem_free(*data);
			*data = NULL;
		} else if (!found) { /* an older opscope did not have it */
			rows_set_absent(*data, (uint32_t)n, col);
		}
	}
	*(struct rows *)table = (struct rows){(uint32_t)n, (uint32_t)n, NULL};
	return 0;
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
		return sqlite_failed(l);
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
		return sqlite_failed(l);
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
		return sqlite_failed(l);
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
	return rc == SQLITE_DONE ? 0 : sqlite_failed(l);
}

static int load_read_all(struct load *l)
{
	bool derived = true;
	if (load_open_db(l) || load_read_meta(l) || read_diags(l) || load_list_chunks(l) || read_strings(l))
		return -1;
	for (int t = 0; t < STORE_N_TABLES; t++)
		if (load_read_table(l, t, &derived))
			return -1;
	if (!derived || l->p->passes_done != PASSES_IN_COLUMNS)
		forget_derived(l->p);
	if (l->no_memory)
		return no_memory(l);
	if (load_aggregations(l->db, l->path, l->p, l->e))
		return -1;
	l->p->reopened = true;
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
		rc = sqlite_failed(&l);
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
	return rc;
}
