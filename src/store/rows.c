#include "store/rows.h"

#include "base/mem.h"
#include "base/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct rows *rows_of(void *table)
{
	return table; /* the first member of every table */
}

/* Where a column grows to many times what it has, it moves: a block that is large from the start has big pages. */
static void *rows_enlarge(void *data, uint32_t n, uint32_t cap, size_t size)
{
	enum { TIMES = 4 };
	if (!data || n > cap / TIMES)
		return mem_realloc(data, cap, size);
	void *larger = mem_alloc(cap, size);
	memcpy(larger, data, n * size);
	mem_free(data);
	return larger;
}

void rows_reserve(void *table, const struct store_table *desc, uint32_t n)
{
	struct rows *r = rows_of(table);
	if (n <= r->cap)
		return;
	for (unsigned c = 0; c < desc->n_columns; c++) {
		const struct store_column *col = &desc->columns[c];
		void **data = rows_column(table, col);
		if (col->group == LOADED || (col->group == SPARSE && *data))
			*data = rows_enlarge(*data, r->n, n, col->size);
	}
	if (r->place)
		r->place = mem_realloc(r->place, n, sizeof *r->place);
	r->cap = n;
}

void rows_note_place(void *table, uint32_t place)
{
	struct rows *r = rows_of(table);
	if (!r->place) {
		r->place = mem_alloc(r->cap, sizeof *r->place);
		memset(r->place, 0xff, r->n * sizeof *r->place);
	}
	r->place[r->n - 1] = place;
}

uint32_t rows_push(void *table, const struct store_table *desc)
{
	struct rows *r = rows_of(table);
	if (r->n == r->cap) {
		if (r->n >= ROW_NONE - 1)
			return ROW_NONE;
		uint64_t cap = r->cap < 64 ? 64 : (uint64_t)r->cap + r->cap / 2;
		rows_reserve(table, desc, cap < ROW_NONE - 1 ? (uint32_t)cap : ROW_NONE - 1);
	}
	return r->n++;
}

void rows_trim(void *table, const struct store_table *desc)
{
	struct rows *r = rows_of(table);
	for (unsigned c = 0; c < desc->n_columns; c++) {
		void **data = rows_column(table, &desc->columns[c]);
		if (*data && desc->columns[c].group != DERIVED)
			*data = mem_realloc(*data, r->n, desc->columns[c].size);
	}
	if (r->place)
		r->place = mem_realloc(r->place, r->n, sizeof *r->place);
	r->cap = r->n;
}

#define GATHER(T)                                                                                      \
	do {                                                                                           \
		const T *from = src;                                                                   \
		T *to = dst;                                                                           \
		for (uint32_t i = 0; i < n; i++)                                                       \
			to[i] = from[order[i]];                                                        \
	} while (0)

static void rows_gather(void *dst, const void *src, unsigned size, const uint32_t *order, uint32_t n)
{
	switch (size) {
	case 1: GATHER(uint8_t); break;
	case 2: GATHER(uint16_t); break;
	case 4: GATHER(uint32_t); break;
	case 8: GATHER(uint64_t); break;
	}
}

void rows_permute(void *table, const struct store_table *desc, const uint32_t *order)
{
	struct rows *r = rows_of(table);
	void *spare = NULL; /* the array that the column before had: new memory costs more than the moving */
	for (unsigned size = 8; size; size /= 2)
		for (unsigned c = 0; c < desc->n_columns; c++) {
			const struct store_column *col = &desc->columns[c];
			void **data = rows_column(table, col);
			if (col->group == DERIVED || !*data || col->size != size)
				continue;
			void *sorted = mem_realloc(spare, r->n, size);
			rows_gather(sorted, *data, size, order, r->n);
			spare = *data;
			*data = sorted;
		}
	mem_free(spare);
	if (r->place) {
		uint32_t *sorted = mem_alloc(r->n, sizeof *sorted);
		rows_gather(sorted, r->place, sizeof *sorted, order, r->n);
		mem_free(r->place);
		r->place = sorted;
	}
	r->cap = r->n;
}

void rows_keep(void *table, const struct store_table *desc, const uint32_t *rows, uint32_t n)
{
	struct rows *r = rows_of(table);
	assert(!ANY_WHERE(i, 1u, n, rows[i - 1] >= rows[i]));
	for (unsigned c = 0; c < desc->n_columns; c++) {
		const struct store_column *col = &desc->columns[c];
		void *data = *rows_column(table, col);
		if (col->group != DERIVED && data)
			rows_gather(data, data, col->size, rows, n); /* no row moves to a place that is still to be read */
	}
	if (r->place)
		rows_gather(r->place, r->place, sizeof *r->place, rows, n);
	r->n = n;
}

void rows_select(void *dst, const void *src, const struct store_table *desc, const uint32_t *order, uint32_t n)
{
	for (unsigned c = 0; c < desc->n_columns; c++) {
		const struct store_column *col = &desc->columns[c];
		const void *from = *rows_column(src, col);
		if (col->group == DERIVED || !from)
			continue;
		*rows_column(dst, col) = mem_alloc(n, col->size);
		rows_gather(*rows_column(dst, col), from, col->size, order, n);
	}
	*rows_of(dst) = (struct rows){n, n, NULL};
	const struct rows *from = src;
	if (from->place) {
		rows_of(dst)->place = mem_alloc(n, sizeof *from->place);
		rows_gather(rows_of(dst)->place, from->place, sizeof *from->place, order, n);
	}
}

#define SET_ALL(T, value)                                                                              \
	do {                                                                                           \
		for (uint32_t i = 0; i < n; i++)                                                       \
			((T *)data)[i] = (value);                                                      \
	} while (0)

void rows_set_absent(void *data, uint32_t n, const struct store_column *c)
{
	if (c->group == DERIVED) {
		memset(data, 0xff, (size_t)n * c->size); /* ROW_NONE */
		return;
	}
	switch (c->type) {
	case ST_ID: case ST_I64_NONE: SET_ALL(int64_t, ID_NONE); break;
	case ST_I32_NONE: SET_ALL(int32_t, INT32_MIN); break;
	case ST_I32_MINUS: SET_ALL(int32_t, -1); break;
	case ST_I16_MINUS: SET_ALL(int16_t, -1); break;
	case ST_F64: SET_ALL(double, NAN); break;
	default: memset(data, 0, (size_t)n * c->size); break;
	}
}

static const struct store_column *rows_column_at(const struct store_table *desc, size_t offset)
{
	const struct store_column *c = desc->columns;
	while (c->offset != offset)
		c++;
	return c;
}

void *rows_derive(void *table, const struct store_table *desc, size_t offset)
{
	const struct store_column *col = rows_column_at(desc, offset);
	struct rows *r = rows_of(table);
	void **data = rows_column(table, col);
	if (!*data)
		*data = mem_alloc(r->n, col->size);
	return memset(*data, 0xff, (size_t)r->n * col->size);
}

void *rows_materialize(void *table, const struct store_table *desc, size_t offset)
{
	const struct store_column *col = rows_column_at(desc, offset);
	struct rows *r = rows_of(table);
	void **data = rows_column(table, col);
	*data = mem_alloc(r->cap, col->size);
	rows_set_absent(*data, r->n, col);
	return *data;
}

void rows_release(void *table, const struct store_table *desc)
{
	for (unsigned c = 0; c < desc->n_columns; c++) {
		void **data = rows_column(table, &desc->columns[c]);
		mem_free(*data);
		*data = NULL;
	}
	mem_free(rows_of(table)->place);
	*rows_of(table) = (struct rows){0};
}

size_t rows_bytes(const void *table, const struct store_table *desc)
{
	const struct rows *r = table;
	size_t bytes = r->place ? r->cap * sizeof *r->place : 0;
	for (unsigned c = 0; c < desc->n_columns; c++)
		if (*rows_column(table, &desc->columns[c]))
			bytes += (size_t)(desc->columns[c].group == DERIVED ? r->n : r->cap) * desc->columns[c].size;
	return bytes;
}
