/* The strings and tables of an .opscope file, as chunks. */
#include "store/save_work.h"

#include "base/hash.h"
#include "base/mem.h"
#include "store/guess.h"

#include <zlib.h>

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

/* Elements of a column as the chunks of a table are written. */
struct save_chunks {
	sqlite3_stmt *st;
	struct buf packed;     /* the data of one */
	int64_t seq;
	unsigned size;
};

static int save_chunks_begin(struct save *s, struct save_chunks *w, const char *table, const char *column, unsigned size, struct err *e)
{
	*w = (struct save_chunks){.size = size};
	w->st = save_prepare(s, "INSERT INTO store_chunk(tbl, col, seq, size, checksum, data, packing) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", e);
	if (!w->st)
		return -1;
	save_bind_str(w->st, 1, str_from(table));
	save_bind_str(w->st, 2, str_from(column));
	sqlite3_bind_int(w->st, 4, (int)size);
	return 0;
}

static void save_chunks_end(struct save_chunks *w)
{
	sqlite3_finalize(w->st);
	buf_release(&w->packed);
}

static int save_chunk(struct save *s, struct save_chunks *w, struct str data, enum save_packing packing, struct err *e)
{
	sqlite3_bind_int64(w->st, 3, w->seq++);
	sqlite3_bind_int64(w->st, 5, (int64_t)hash_bytes(data.p, data.n));
	sqlite3_bind_blob64(w->st, 6, data.p, data.n, SQLITE_STATIC);
	sqlite3_bind_int(w->st, 7, packing);
	return save_step(s, w->st, e);
}

/* Chunks of a column of c->n rows; none for 0. `packing`: SAVE_PACKED, or as they are where that is shorter; or SAVE_CODED. */
static int save_column(struct save *s, const char *table, const char *column, const struct packed_column *c, enum save_packing packing, struct err *e)
{
	struct save_chunks w;
	const uint32_t of_chunk = SAVE_CHUNK / c->size;
	int rc = save_chunks_begin(s, &w, table, column, c->size, e);
	for (uint32_t at = 0, n; !rc && at < c->n; at += n) {
		n = c->n - at < of_chunk ? c->n - at : of_chunk;
		struct str whole = {(const char *)c->data + (uint64_t)at * c->size, (uint64_t)n * c->size};
		buf_clear(&w.packed);
		packed_put(c, at, n, &w.packed);
		bool shorter = packing == SAVE_CODED || w.packed.n < whole.n;
		rc = save_chunk(s, &w, shorter ? buf_view(&w.packed) : whole, shorter ? packing : SAVE_AS_IT_IS, e);
	}
	save_chunks_end(&w);
	return rc;
}

/* Deflated, or as they are where that is less than an eighth longer: not worth inflating at each reading. */
static int save_bytes(struct save *s, const char *table, const char *column, struct str bytes, struct err *e)
{
	struct save_chunks w;
	int rc = save_chunks_begin(s, &w, table, column, 1, e);
	for (size_t at = 0, n; !rc && at < bytes.n; at += n) {
		n = bytes.n - at < SAVE_CHUNK ? bytes.n - at : SAVE_CHUNK;
		struct str whole = {bytes.p + at, n};
		uLongf packed = compressBound((uLong)n);
		buf_clear(&w.packed);
		Bytef *to = (Bytef *)buf_room(&w.packed, packed);
		int failed = compress2(to, &packed, (const Bytef *)whole.p, (uLong)n, Z_BEST_SPEED);
		if (failed == Z_MEM_ERROR)
			mem_fail(0);
		bool shorter = failed == Z_OK && packed < n - n / 8;
		w.packed.n = packed;
		rc = save_chunk(s, &w, shorter ? buf_view(&w.packed) : whole, shorter ? SAVE_DEFLATED : SAVE_AS_IT_IS, e);
	}
	save_chunks_end(&w);
	return rc;
}

/* The pool is written as one run of bytes; in memory it is scattered over the arena's chunks. */
int save_strings(struct save *s, const struct intern *t, struct err *e)
{
	uint32_t *length = NEW_ARRAY_RAW(t->n, uint32_t), *hash = NEW_ARRAY_RAW(t->n, uint32_t);
	struct buf pool = {0};
	for (uint32_t i = 0; i < t->n; i++) {
		length[i] = t->entry[i].n;
		hash[i] = t->entry[i].hash;
		buf_put(&pool, t->entry[i].p, (size_t)length[i] + 1);
	}
	const struct packed_column lengths = {.data = length, .size = sizeof *length, .none = -1, .n = t->n};
	const struct packed_column hashes = {.data = hash, .size = sizeof *hash, .none = -1, .n = t->n};
	int rc = save_rows_count(s, SAVE_STRINGS, t->n, e) || save_column(s, SAVE_STRINGS, "length", &lengths, SAVE_PACKED, e) ||
	         save_column(s, SAVE_STRINGS, "hash", &hashes, SAVE_PACKED, e) || save_bytes(s, SAVE_STRINGS, "bytes", buf_view(&pool), e);
	buf_release(&pool);
	mem_free(length);
	mem_free(hash);
	return rc ? -1 : 0;
}

static int save_table_column(struct save *s, const struct profile *p, enum store_table_id id, const struct store_column *col, struct guess_classes *k, struct err *e)
{
	const struct guess g = guess_of(id, col);
	const void *table = profile_table(p, id);
	const uint32_t n = ((const struct rows *)table)->n;
	void *data = *rows_column(table, col);
	if (!data)
		return 0;
	uint32_t *codes = g.how == GUESS_VALUES ? NULL : guess_codes(p, &g, data, n);
	const struct packed_column c = guess_column(p, &g, col, codes ? codes : data, n, k);
	int rc = save_column(s, store_tables[id].name, col->name, &c, codes ? SAVE_CODED : SAVE_PACKED, e);
	mem_free(codes);
	return rc;
}

int save_tables(struct save *s, const struct profile *p, struct err *e)
{
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const struct store_table *desc = &store_tables[t];
		if (save_rows_count(s, desc->name, ((const struct rows *)profile_table(p, t))->n, e))
			return -1;
		struct guess_classes k = {0};
		int rc = 0;
		for (unsigned c = 0; !rc && c < desc->n_columns; c++)
			rc = save_table_column(s, p, t, &desc->columns[c], &k, e);
		guess_classes_release(&k);
		if (rc)
			return -1;
	}
	return 0;
}
