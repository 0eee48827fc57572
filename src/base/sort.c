#include "base/sort.h"

#include "base/mem.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* A run that is sorted at once fits a cache; sorting all of a large table digit by digit would meet all of its memory again for each. */
enum { DIGIT_BITS = 11, BUCKETS = 1 << DIGIT_BITS, SORT_RUN = 1 << 18 };

bool sort_is_sorted(const struct sort_item *v, uint32_t n)
{
	return !ANY_WHERE(i, 1, n, v[i - 1].key > v[i].key);
}

static void insertion_sort(struct sort_item *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct sort_item x = v[i];
		uint32_t k = i;
		for (; k && v[k - 1].key > x.key; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/* `scratch`: as many items. */
static void radix_sort(struct sort_item *v, uint32_t n, struct sort_item *scratch)
{
	uint64_t all_or = 0, all_and = ~0ull;
	for (uint32_t i = 0; i < n; i++) {
		all_or |= v[i].key;
		all_and &= v[i].key;
	}
	uint64_t differ = all_or ^ all_and;
	struct sort_item *from = v, *to = scratch;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!((differ >> shift) & (BUCKETS - 1)))
			continue;
		uint32_t count[BUCKETS] = {0};
		for (uint32_t i = 0; i < n; i++)
			count[(from[i].key >> shift) & (BUCKETS - 1)]++;
		for (uint32_t b = 0, at = 0; b < BUCKETS; b++) {
			uint32_t c = count[b];
			count[b] = at;
			at += c;
		}
		for (uint32_t i = 0; i < n; i++)
			to[count[(from[i].key >> shift) & (BUCKETS - 1)]++] = from[i];
		struct sort_item *swap = from;
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, (size_t)n * sizeof *v);
}

/* How many items of the sorted v stand before one of this key: with equal ones, or without. */
static uint32_t sort_before(const struct sort_item *v, uint32_t n, uint64_t key, bool with_equal)
{
	uint32_t low = 0;
	while (n) {
		const uint32_t half = n / 2;
		if (v[low + half].key < key || (with_equal && v[low + half].key == key)) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* Merges the sorted first `half` items of v with the sorted others. Only where the two overlap anything moves: `scratch` has room for what of the first does. */
static void merge_halves(struct sort_item *v, uint32_t half, uint32_t n, struct sort_item *scratch)
{
	const uint32_t stay = sort_before(v, half, v[half].key, true), end = half + sort_before(v + half, n - half, v[half - 1].key, false), moved = half - stay;
	memcpy(scratch, v + stay, (size_t)moved * sizeof *v);
	for (uint32_t i = 0, k = half, to = stay; i < moved;)
		v[to++] = k < end && v[k].key < scratch[i].key ? v[k++] : scratch[i++];
}

static void sort_runs(struct sort_item *v, uint32_t n, struct sort_item *scratch)
{
	if (n <= SORT_RUN) {
		radix_sort(v, n, scratch);
		return;
	}
	sort_runs(v, n / 2, scratch);
	sort_runs(v + n / 2, n - n / 2, scratch);
	merge_halves(v, n / 2, n, scratch);
}

void sort_items(struct sort_item *v, uint32_t n)
{
	if (n < 32) {
		insertion_sort(v, n);
		return;
	}
	if (sort_is_sorted(v, n))
		return;
	struct sort_item *scratch = NEW_ARRAY_RAW(MAX(MIN(n, SORT_RUN), n / 2), struct sort_item);
	sort_runs(v, n, scratch);
	mem_free(scratch);
}

static int compare_i64(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return COMPARE(*x, *y);
}

void sort_i64(int64_t *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof *v, compare_i64);
}
