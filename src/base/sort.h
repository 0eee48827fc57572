/* Sorting row numbers by 64-bit keys, stable: runs by an LSD radix sort that skips digits which all keys share, and runs merged where they overlap; and a merge of the
 * runs that are in order already. And what qsort needs. */
#ifndef OPSCOPE_BASE_SORT_H
#define OPSCOPE_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a stands to b, for comparators of qsort: less, equal or greater than 0. By several keys: COMPARE(x->a, y->a) ?: COMPARE(x->b, y->b). */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

struct sort_item {
	uint64_t key;
	uint32_t row;
	uint32_t tie; /* carried along, not compared */
};

/* Sorts by key, ascending; equal keys keep their order. O(n x digits in use), and O(n log n) of items that overlap far;
 * uses n items of scratch memory, half as many of a large n. */
void sort_items(struct sort_item *v, uint32_t n);

/* Sorts row numbers by key[row], ascending; rows of equal keys keep their order. It finds the runs that are in order already and merges neighbours: O(n) where these
 * do not overlap or are few, and at most n rows of scratch memory, a fraction of what sort_items takes. False, with `row` in another order than before, where
 * they are so many that sort_items is quicker. */
bool sort_runs(uint32_t *row, uint32_t n, const int64_t *key);

bool sort_is_sorted(const struct sort_item *v, uint32_t n);

/* Numbers alone, ascending. */
void sort_i64(int64_t *v, size_t n);

/* The median of n >= 1 numbers, the middle between the two middle ones where n is even. Sorts v. */
static inline int64_t sort_median_i64(int64_t *v, size_t n)
{
	sort_i64(v, n);
	return n % 2 ? v[n / 2] : v[n / 2 - 1] + (v[n / 2] - v[n / 2 - 1]) / 2;
}

/* An int64 as a uint64 that compares the same way. */
static inline uint64_t sort_key_i64(int64_t v) { return (uint64_t)v ^ (1ull << 63); }

#endif
