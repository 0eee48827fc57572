#include "base/sort.h"

#include "base/mem.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, BUCKETS = 1 << DIGIT_BITS };

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

void sort_items(struct sort_item *v, uint32_t n)
{
	if (n < 32) {
		insertion_sort(v, n);
		return;
	}
	if (sort_is_sorted(v, n))
		return;
	uint64_t all_or = 0, all_and = ~0ull;
	for (uint32_t i = 0; i < n; i++) {
		all_or |= v[i].key;
		all_and &= v[i].key;
	}
	uint64_t differ = all_or ^ all_and;
	struct sort_item *scratch = NEW_ARRAY_RAW(n, struct sort_item), *from = v, *to = scratch;
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
