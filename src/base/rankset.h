/* A set of row numbers that gives each member its place among the members: data about a few rows of a large table then takes
 * an array as long as there are members, not as the table. 0.19 bytes a row of the table; all operations O(1).
 * Life cycle: rankset_init, rankset_add..., rankset_seal, then rankset_has and rankset_place, rankset_release. */
#ifndef OPSCOPE_BASE_RANKSET_H
#define OPSCOPE_BASE_RANKSET_H

#include <stdbool.h>
#include <stdint.h>

struct rankset {
	uint64_t *bits;
	uint32_t *before;  /* members in the words before each word */
	uint32_t members;  /* after rankset_seal */
	uint32_t n_words;
};

void rankset_init(struct rankset *s, uint32_t n_rows);
void rankset_seal(struct rankset *s);
void rankset_release(struct rankset *s);

static inline void rankset_add(struct rankset *s, uint32_t row) { s->bits[row >> 6] |= 1ull << (row & 63); }
static inline bool rankset_has(const struct rankset *s, uint32_t row) { return s->bits[row >> 6] >> (row & 63) & 1; }

/* 0 .. members - 1, in order of rows; `row` must be a member. */
static inline uint32_t rankset_place(const struct rankset *s, uint32_t row)
{
	uint64_t below = s->bits[row >> 6] & ((1ull << (row & 63)) - 1);
	return s->before[row >> 6] + (uint32_t)__builtin_popcountll(below);
}

#endif
