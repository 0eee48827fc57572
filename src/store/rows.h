/* Struct-of-arrays tables, described by columns.def: each table is a struct whose first member is `struct rows` and whose
 * other members are one array per column. The generic functions here grow, reorder and release any of them through its
 * `struct store_table`. */
#ifndef OPSCOPE_STORE_ROWS_H
#define OPSCOPE_STORE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NONE UINT32_MAX
#define ID_NONE INT64_MIN

enum store_type {
	ST_TIME,      /* ns on the trace's clock */
	ST_DUR,       /* ns */
	ST_ID,        /* int64 id, ID_NONE = none */
	ST_I64, ST_I32, ST_I16, ST_BOOL,         /* 0 when not stated */
	ST_I64_NONE, ST_I32_NONE, ST_F64,        /* ID_NONE, INT32_MIN, NaN when not stated */
	ST_I32_MINUS, ST_I16_MINUS,              /* -1 when not stated */
	ST_STR,       /* interned string id */
	ST_TRACK, ST_SPAN, ST_LAUNCH, ST_ARGS, ST_CAT, /* row of that table, ROW_NONE = none */
	ST_SPAN_KIND, ST_GPU_KIND, /* enum span_kind, enum gpu_kind */
	ST_EVIDENCE,  /* enum gpu_evidence, 0 = not stated */
	ST_PHASE,     /* a character of the input's `ph` */
};

enum store_group { LOADED, SPARSE, DERIVED };

struct store_column {
	const char *name;
	const char *help;
	size_t offset;          /* of the array pointer in the table's struct */
	uint8_t size;           /* bytes per element */
	enum store_type type;
	enum store_group group;
};

struct store_table {
	const char *name;
	const char *help;
	const struct store_column *columns;
	unsigned n_columns;
	size_t offset;          /* of the table in struct profile */
};

struct rows {
	uint32_t n, cap;
	uint32_t *place; /* number of each row's event in profile.written, ROW_NONE = none; NULL where that is not kept. Never saved */
};

/* Makes room for one more row in every LOADED column, and in every SPARSE one that has an array, and returns its index;
 * ROW_NONE when 2^32-2 rows are full. The new row's bytes are not set: the caller sets each of these columns. */
uint32_t rows_push(void *table, const struct store_table *desc);

/* Notes the place of the row that was pushed last. */
void rows_note_place(void *table, uint32_t place);

/* Makes room for `n` rows in all. */
void rows_reserve(void *table, const struct store_table *desc, uint32_t n);

/* Gives the SPARSE column at `offset` its array: all rows so far are "not stated". */
void *rows_materialize(void *table, const struct store_table *desc, size_t offset);

/* Gives back spare capacity, so that what is held is what is used. */
void rows_trim(void *table, const struct store_table *desc);

/* Reorders the rows: new row i is old row order[i]. Every column that an input filled is moved, one at a time, the widest
 * first, through one temporary array. The table must be trimmed (rows_trim). */
void rows_permute(void *table, const struct store_table *desc, const uint32_t *order);

/* Sets `n` elements to the value that means "not stated" in a column of this type and group. */
void rows_set_absent(void *data, uint32_t n, const struct store_column *c);

/* Allocates the DERIVED column at `offset` for all rows, filled with 0xff (ROW_NONE). */
void *rows_derive(void *table, const struct store_table *desc, size_t offset);

/* Keeps only the rows rows[0..n-1], which ascend. */
void rows_keep(void *table, const struct store_table *desc, const uint32_t *rows, uint32_t n);

/* Fills *dst, an empty table, with rows rows[0..n-1] of *src: all that an input filled, nothing derived. */
void rows_select(void *dst, const void *src, const struct store_table *desc, const uint32_t *rows, uint32_t n);

void rows_release(void *table, const struct store_table *desc);

/* Bytes held by all columns. */
size_t rows_bytes(const void *table, const struct store_table *desc);

static inline void **rows_column(const void *table, const struct store_column *c)
{
	return (void **)((char *)(uintptr_t)table + c->offset);
}

#endif
