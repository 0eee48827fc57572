/* What columns of an .opscope file are guessed from when they are packed (store/packed.h): one row of guess.def for each that has helpers. The rows are part of the
 * file's format: who changes one raises SAVE_VERSION. */
#ifndef OPSCOPE_STORE_GUESS_H
#define OPSCOPE_STORE_GUESS_H

#include "store/packed.h"
#include "store/profile.h"

enum guess_how {
	GUESS_VALUES,    /* the values themselves are packed */
	GUESS_PARENT,    /* of span.parent: how many ranges were left since the row before */
	GUESS_OP,        /* of span.op: 0 where it is the nearest op around */
	GUESS_LAUNCHER,  /* of gpu_op.op: 0 where it is that of the call */
};

enum { GUESS_TURNS = 3 };

struct guess {
	enum store_table_id table;
	size_t column;           /* offsets in the table's struct; 0 = none */
	unsigned turn;           /* columns of earlier turns are there when this is read */
	size_t klass, like, at;  /* struct packed_column */
	enum guess_how how;
};

/* Of a column; those without a row have no helpers, and turn 1. */
struct guess guess_of(enum store_table_id table, const struct store_column *c);

/* The classes of a table's rows, as far as they are known. {0} at first; then those of the column that was asked for last. */
struct guess_classes {
	const uint8_t *klass;
	struct packed_split *split;
};
void guess_classes_release(struct guess_classes *k);

/* What packed_put and packed_take need, of the helpers that *p has; `n`: rows of the table. It is valid until *k is used for another column. */
struct packed_column guess_column(const struct profile *p, const struct guess *g, const struct store_column *c, void *data, uint32_t n, struct guess_classes *k);

/* A new array of n codes to pack in place of the column's values (mem_free). NULL: a helper is missing, or some value has no code; the values are packed then. */
uint32_t *guess_codes(const struct profile *p, const struct guess *g, const uint32_t *data, uint32_t n);

/* Whether the columns are there that codes follow from. */
bool guess_has_helpers(const struct profile *p, const struct guess *g);

/* Turns such numbers into values, where the helpers are there. False where they are of no value. */
bool guess_values(const struct profile *p, const struct guess *g, uint32_t *data, uint32_t n);

#endif
