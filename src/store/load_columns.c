/* The strings and tables of an .opscope file, from their chunks. */
#include "store/load_work.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/spill.h"
#include "store/guess.h"
#include "store/save_work.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <zlib.h>

/* Bytes in memory for one of the file, of a column that is packed best: bounds what a file may claim. */
enum { LOAD_MOST = PACKED_BLOCK * sizeof(int64_t) / PACKED_LEAST };

/* The number of rows of a table, -1 with *e set when it is not known. */
static int64_t load_rows_count(struct load *l, const char *name)
{
	sqlite3_stmt *st = NULL;
	int64_t n = 0; /* a table that an older opscope did not have is empty */
	if (sqlite3_prepare_v2(l->db, "SELECT rows FROM store_table WHERE name=?1", -1, &st, NULL) != SQLITE_OK)
		return load_sqlite_failed(l);
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		n = load_sqlite_failed(l);
	else if (n < 0 || n >= ROW_NONE)
		n = load_damaged(l, "table %s has %lld rows", name, (long long)n);
	sqlite3_finalize(st);
	return n;
}

/* All chunks in the order in which they were written: one scan that reads no data. */
int load_list_chunks(struct load *l)
{
	sqlite3_stmt *st = NULL;
	const char *sql = l->version < SAVE_VERSION_PACKED
		? "SELECT id, seq, size, checksum, 0, length(data), tbl, col FROM store_chunk ORDER BY id"
		: "SELECT id, seq, size, checksum, ifnull(packing, 0), length(data), tbl, col FROM store_chunk ORDER BY id";
	if (sqlite3_prepare_v2(l->db, sql, -1, &st, NULL) != SQLITE_OK)
		return load_sqlite_failed(l);
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		enum { NUMBERS = 6 };
		MEM_GROW(l->chunk, l->cap_chunks, l->n_chunks + 1);
		int64_t v[NUMBERS];
		for (int i = 0; i < NUMBERS; i++)
			v[i] = sqlite3_column_type(st, i) == SQLITE_INTEGER ? sqlite3_column_int64(st, i) : -1;
		l->chunk[l->n_chunks++] = (struct chunk){
			.id = v[0], .seq = v[1], .size = v[2], .checksum = v[3], .packing = v[4], .bytes = v[5],
			.table = intern_str(&l->names, load_text_of(l, st, NUMBERS)),
			.column = intern_str(&l->names, load_text_of(l, st, NUMBERS + 1)),
		};
	}
	sqlite3_finalize(st);
	for (uint32_t i = 0; i < l->n_chunks; i++)
		l->p->content = load_content(l->p->content, l->chunk[i].id, l->chunk[i].checksum);
	return rc == SQLITE_DONE ? 0 : load_sqlite_failed(l);
}

/* The chunk's data into out[0..bytes-1]. */
static int load_read_chunk(struct load *l, const struct chunk *c, void *out)
{
	int rc = l->blob ? sqlite3_blob_reopen(l->blob, c->id)
	                 : sqlite3_blob_open(l->db, "main", "store_chunk", "data", c->id, 0, &l->blob);
	if (rc != SQLITE_OK)
		return load_sqlite_failed(l);
	if (sqlite3_blob_bytes(l->blob) != c->bytes)
		return load_damaged(l, "chunk %lld has another length than its row says", (long long)c->id);
	if (c->bytes && sqlite3_blob_read(l->blob, out, (int)c->bytes, 0) != SQLITE_OK)
		return load_sqlite_failed(l);
	if (hash_bytes(out, (size_t)c->bytes) != (uint64_t)c->checksum)
		return load_damaged(l, "chunk %lld does not match its checksum", (long long)c->id);
	return 0;
}

/* A column that is being read: its chunks are list[0..n-1], by their numbers in load.chunk. */
struct load_column {
	const char *table, *name;
	unsigned size;
	uint64_t n;            /* elements that the table has */
	uint64_t most;         /* that the chunks can hold */
	bool found, coded;
	uint32_t table_id, column_id;
};

/* Elements that a chunk can hold at most; 0 where it is not as we write them. */
static uint64_t load_chunk_most(const struct chunk *c)
{
	enum { DEFLATE_MOST = 1032 };  /* https://zlib.net/zlib_tech.html */
	const uint64_t bytes = (uint64_t)c->bytes, size = (uint64_t)c->size;
	uint64_t most = 0;
	switch (c->packing) {
	case SAVE_AS_IT_IS: return bytes / size;
	case SAVE_PACKED: case SAVE_CODED: most = bytes / PACKED_LEAST * PACKED_BLOCK; break;
	case SAVE_DEFLATED: most = size == 1 ? bytes * DEFLATE_MOST : 0; break;
	}
	return most < SAVE_CHUNK / size ? most : SAVE_CHUNK / size;
}

static bool load_is_of(const struct chunk *c, const struct load_column *v)
{
	return c->table == v->table_id && c->column == v->column_id;
}

/* Looks for the chunks of a column, before there is memory for it. */
static int load_find_column(struct load *l, struct load_column *v)
{
	int64_t seq = 0;
	v->table_id = intern_find(&l->names, str_from(v->table));
	v->column_id = intern_find(&l->names, str_from(v->name));
	for (uint32_t i = 0; i < l->n_chunks; i++) {
		const struct chunk *c = &l->chunk[i];
		if (!load_is_of(c, v))
			continue;
		bool coded = c->packing == SAVE_CODED;
		if (c->seq != seq || c->size != v->size || c->bytes < 0 || (uint64_t)c->bytes > l->file_bytes || (seq && coded != v->coded))
			return load_damaged(l, "the chunks of column %s.%s do not fit its table", v->table, v->name);
		v->coded = coded;
		v->most += load_chunk_most(c);
		seq++;
	}
	v->found = seq > 0 || !v->n;
	return v->found && v->most < v->n ? load_damaged(l, "column %s.%s is shorter than its table", v->table, v->name) : 0;
}

/* The same of a column of the strings, which each file has. */
static int load_find_strings(struct load *l, struct load_column *v)
{
	if (load_find_column(l, v))
		return -1;
	return v->found ? 0 : load_damaged(l, "its strings do not fit together");
}

/* The data of a chunk that is not as it is in memory, with room behind it. */
static int load_read_packed(struct load *l, const struct chunk *c, struct str *data)
{
	buf_clear(&l->packed);
	char *p = buf_room(&l->packed, (size_t)c->bytes + PACKED_PADDING);
	memset(p + c->bytes, 0, PACKED_PADDING);
	*data = (struct str){p, (size_t)c->bytes};
	return load_read_chunk(l, c, p);
}

static bool load_inflate(struct str data, char *out, uint64_t n)
{
	uLongf got = (uLongf)n;
	int rc = uncompress((Bytef *)out, &got, (const Bytef *)data.p, (uLong)data.n);
	if (rc == Z_MEM_ERROR)
		mem_fail(0);
	return rc == Z_OK && got == n;
}

/* Fills the column from its chunks; `to` says where, and what helps. */
static int load_fill_column(struct load *l, const struct load_column *v, const struct packed_column *to)
{
	uint64_t at = 0;
	const uint64_t of_chunk = SAVE_CHUNK / v->size;
	for (uint32_t i = 0; i < l->n_chunks; i++) {
		const struct chunk *c = &l->chunk[i];
		if (!load_is_of(c, v))
			continue;
		uint64_t left = v->n - at, n = left < of_chunk ? left : of_chunk;
		char *out = (char *)to->data + at * v->size;
		struct str data;
		bool good = true;
		if (c->packing == SAVE_AS_IT_IS) {
			n = (uint64_t)c->bytes / v->size;
			if ((uint64_t)c->bytes % v->size || n > left)
				return load_damaged(l, "the chunks of column %s.%s do not fit its table", v->table, v->name);
			if (load_read_chunk(l, c, out))
				return -1;
		} else {
			if (load_read_packed(l, c, &data))
				return -1;
			good = c->packing == SAVE_DEFLATED ? v->size == 1 && load_inflate(data, out, n) : packed_take(to, (uint32_t)at, (uint32_t)n, data);
		}
		if (!good)
			return load_damaged(l, "column %s.%s cannot be unpacked", v->table, v->name);
		at += n;
	}
	return at != v->n ? load_damaged(l, "column %s.%s is shorter than its table", v->table, v->name) : 0;
}

/* Memory that is about to be filled. Met page by page, its first use would cost more than all the reading: of big columns all pages are asked for at once, and
 * big ones, which those that lie beside each other share. Where the system has none, nothing is lost. */
static void *load_alloc_to_fill(uint64_t n, unsigned size)
{
	char *p = mem_alloc(n ? n : 1, size);
#ifdef MADV_POPULATE_WRITE
	enum { PAGE = 4096, WORTH_IT = 256 << 10 };
	const uint64_t bytes = n * size;
	if (bytes >= WORTH_IT && !spill_bytes(p)) {
		const uintptr_t first = (uintptr_t)p / PAGE * PAGE, whole = ((uintptr_t)p + PAGE - 1) / PAGE * PAGE, end = (uintptr_t)p + bytes;
		madvise((void *)first, (end - first + PAGE - 1) / PAGE * PAGE, MADV_HUGEPAGE); /* all of the block: one that is marked in part could not be resized without a copy */
		madvise((void *)whole, (end - whole) / PAGE * PAGE, MADV_POPULATE_WRITE);
	}
#endif
	return p;
}

/* A column of the strings, new; NULL and the error. */
static void *load_string_numbers(struct load *l, const char *name, uint64_t n)
{
	struct load_column v = {.table = SAVE_STRINGS, .name = name, .size = sizeof(uint32_t), .n = n};
	if (load_find_strings(l, &v))
		return NULL;
	uint32_t *numbers = load_alloc_to_fill(n, sizeof *numbers);
	if (load_fill_column(l, &v, &(struct packed_column){.data = numbers, .size = sizeof *numbers, .none = -1}) == 0)
		return numbers;
	mem_free(numbers);
	return NULL;
}

/* Their bytes, in the arena; NULL and the error. */
static char *load_string_bytes(struct load *l, uint64_t total)
{
	struct load_column v = {.table = SAVE_STRINGS, .name = "bytes", .size = 1, .n = total};
	if (load_find_strings(l, &v))
		return NULL;
	char *pool = arena_bytes(&l->p->strings.bytes, total);
	return load_fill_column(l, &v, &(struct packed_column){.data = pool, .size = 1}) ? NULL : pool;
}

int load_read_strings(struct load *l)
{
	int64_t n = load_rows_count(l, SAVE_STRINGS);
	if (n < 0)
		return -1;
	uint32_t *length = load_string_numbers(l, "length", (uint64_t)n), *hash = length ? load_string_numbers(l, "hash", (uint64_t)n) : NULL;
	uint64_t total = 0;
	for (int64_t i = 0; hash && i < n; i++)
		total += (uint64_t)length[i] + 1;
	char *pool = hash ? load_string_bytes(l, total) : NULL;
	int rc = pool ? 0 : -1;
	if (!rc && !intern_load(&l->p->strings, (uint32_t)n, length, hash, pool, total))
		rc = load_damaged(l, "its strings do not fit together");
	mem_free(length);
	mem_free(hash);
	return rc;
}

/* What of a table nobody will ask for; all of a table, or a SPARSE column that no other is guessed from. */
static bool load_leaves_table(const struct profile *p, enum store_table_id id)
{
	return (id == TABLE_flow && p->left_out & LEFT_FLOWS) || (id == TABLE_memory && p->left_out & LEFT_MEMORY) || (id == TABLE_mark && p->left_out & LEFT_MARKS);
}

static bool load_leaves_column(const struct profile *p, enum store_table_id id, const struct store_column *col)
{
	return load_leaves_table(p, id) || (id == TABLE_span && col->offset == offsetof(struct spans, aux_id) && p->left_out & LEFT_AUX_IDS);
}

static void load_note_left(struct load *l, const struct store_column *col, uint32_t n, bool found)
{
	const size_t bytes = (size_t)n * col->size;
	if (col->group == DERIVED)
		l->left_derived += bytes;
	else if (found || col->group == LOADED)
		l->p->left_bytes += bytes;
}

/* Data that stays packed is held against its checksum all the same, and its rows are as many as the table has. */
static int load_check_left(struct load *l, const struct load_column *v)
{
	struct str data;
	uint64_t rows = 0, more;
	for (uint32_t i = 0; i < l->n_chunks; i++) {
		const struct chunk *c = &l->chunk[i];
		if (!load_is_of(c, v))
			continue;
		if (load_read_packed(l, c, &data))
			return -1;
		more = (uint64_t)c->bytes / v->size;
		if (c->packing != SAVE_AS_IT_IS && !packed_says_rows(data, &more))
			return load_damaged(l, "column %s.%s cannot be unpacked", v->table, v->name);
		rows += more;
	}
	return v->found && rows != v->n ? load_damaged(l, "the chunks of column %s.%s do not fit its table", v->table, v->name) : 0;
}

/* One column of a table of n rows. *found: it is there, or there is nothing to be. */
static int load_read_column(struct load *l, const struct guess *g, const struct store_column *col, uint32_t n, struct guess_classes *k, bool *found)
{
	void **data = rows_column(profile_table(l->p, g->table), col);
	struct load_column v = {.table = store_tables[g->table].name, .name = col->name, .size = col->size, .n = n};
	if (load_find_column(l, &v))
		return -1;
	*found = v.found;
	if (load_leaves_column(l->p, g->table, col)) {
		load_note_left(l, col, n, v.found);
		return load_check_left(l, &v);
	}
	if (!v.found && col->group == SPARSE)
		return 0;
	*data = load_alloc_to_fill(n, col->size);
	struct packed_column to = guess_column(l->p, g, col, *data, n, k);
	if (v.found && load_fill_column(l, &v, &to))
		return -1;
	if (!v.coded)
		return 0;
	*found = guess_has_helpers(l->p, g); /* without helpers the column counts as missing, and analysis runs again */
	return *found && !guess_values(l->p, g, *data, n) ? load_damaged(l, "column %s.%s cannot be unpacked", v.table, v.name) : 0;
}

static int load_read_columns(struct load *l, enum store_table_id id, uint32_t n, struct guess_classes *k, bool *derived)
{
	const struct store_table *desc = &store_tables[id];
	for (unsigned turn = 0; turn < GUESS_TURNS; turn++)
		for (unsigned c = 0; c < desc->n_columns; c++) {
			const struct store_column *col = &desc->columns[c];
			const struct guess g = guess_of(id, col);
			void **data = rows_column(profile_table(l->p, id), col);
			bool found;
			if (g.turn != turn)
				continue;
			if (load_read_column(l, &g, col, n, k, &found))
				return -1;
			if (!found && col->group == DERIVED)
				*derived = false;
			if (col->group == SPARSE && (!found || !n)) { /* without rows none states a value */
				mem_free(*data);
				*data = NULL;
			} else if (!found && *data) { /* an older opscope did not have it */
				rows_set_absent(*data, n, col);
			}
		}
	return 0;
}

int load_read_table(struct load *l, enum store_table_id id, bool *derived)
{
	const struct store_table *desc = &store_tables[id];
	struct guess_classes k = {0};
	int64_t n = load_rows_count(l, desc->name);
	uint64_t row_bytes = 0;
	if (n < 0)
		return -1;
	for (unsigned c = 0; c < desc->n_columns; c++)
		row_bytes += desc->columns[c].group == LOADED ? desc->columns[c].size : 0; /* which each file has */
	if ((uint64_t)n * row_bytes > l->file_bytes * LOAD_MOST)
		return load_damaged(l, "table %s claims more rows than the file can hold", desc->name);
	int rc = load_read_columns(l, id, (uint32_t)n, &k, derived);
	guess_classes_release(&k);
	const bool left = load_leaves_table(l->p, id);
	if (!rc && !left)
		*(struct rows *)profile_table(l->p, id) = (struct rows){(uint32_t)n, (uint32_t)n, NULL};
	if (left && id == TABLE_memory)
		l->p->left_memory = (uint32_t)n;
	return rc;
}
