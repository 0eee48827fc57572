/* Columns of integers in few bytes, for files. Rows go by blocks of PACKED_BLOCK; a block is packed by itself, but for the last value before it.
 *
 * A block is one stream of values, or one for each class, where another column tells classes apart: durations of kernels are unlike those of calls. A value
 * is kept as its residual: what is left after a prediction is subtracted. It is 0, the value before, another column's value in this row or in the row that a
 * third column points at, or a sum of these. A residual becomes (residual - base) / scale, which mostly fits few bits; outliers are kept apart with their places.
 *
 *   rows    their number, 7 bits a byte, least first, as all numbers below; then the blocks
 *   block   1 byte: 0 = one stream; 1 = one for each class that is there, in rising order; the class of a row is another column's number modulo 16
 *   stream  1 byte: bits 0 to 2 prediction (enum packed_by), bit 3 some are none, bit 4 some are kept apart, bit 5 there is a scale; 1 byte: bits a value, 0 to 64;
 *           base, zigzag; scale; number of those apart; bits of one apart, 1 byte; their places, 2 bytes each, rising; they
 *           themselves; then all values. Bits are filled from the least on; each of the last two ends with a whole byte.
 *
 * Where some are none, 0 is none and all others are one more. Numbers are taken modulo 2^64, and a value is what its size keeps of that. */
#ifndef OPSCOPE_STORE_PACKED_H
#define OPSCOPE_STORE_PACKED_H

#include "base/buf.h"

enum {
	PACKED_BLOCK = 1024,
	PACKED_CLASSES = 16,
	PACKED_LEAST = 4,      /* bytes of a block at least: one stream of values that are alike */
	PACKED_PADDING = 16,   /* bytes that must be readable behind what packed_take is given */
};

/* The rows of each block by class: those of class k are place[start[k]] .. place[start[k+1]-1], counted from the block's first. */
struct packed_split {
	uint16_t start[PACKED_CLASSES + 1];
	uint16_t place[PACKED_BLOCK];
};

/* A new array, one split for each block of n rows (mem_free). A class is klass[row] modulo PACKED_CLASSES. */
struct packed_split *packed_split(const uint8_t *klass, uint32_t n);

/* A column, and the columns that help to guess it. They are arrays of `n` rows each; NULL = there is none. */
struct packed_column {
	void *data;
	unsigned size;             /* bytes of a value: 1, 2, 4 or 8 */
	int64_t none;              /* the value that means "none", extended by its sign */
	const struct packed_split *split;
	const int64_t *like;       /* another column */
	const uint32_t *at;        /* rows of `like` */
	uint32_t n;
};

/* Appends rows first .. first+n-1: `first` begins a block, and where there are classes, the last ends one, or the column. */
void packed_put(const struct packed_column *c, uint32_t first, uint32_t n, struct buf *out);

/* How many rows the bytes say they are, without a look at the rows; false where no number stands there. */
bool packed_says_rows(struct str bytes, uint64_t *rows);

/* Fills these rows from all of the bytes; false where they are not what packed_put writes. */
bool packed_take(const struct packed_column *c, uint32_t first, uint32_t n, struct str bytes);

#endif
