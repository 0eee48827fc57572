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

static void sort_by_insertion(struct sort_item *v, uint32_t n)
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
static void sort_radix(struct sort_item *v, uint32_t n, struct sort_item *scratch)
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
static void sort_merge_halves(struct sort_item *v, uint32_t half, uint32_t n, struct sort_item *scratch)
{
	const uint32_t stay = sort_before(v, half, v[half].key, true), end = half + sort_before(v + half, n - half, v[half - 1].key, false), moved = half - stay;
	memcpy(scratch, v + stay, (size_t)moved * sizeof *v);
	for (uint32_t i = 0, k = half, to = stay; i < moved;)
		v[to++] = k < end && v[k].key < scratch[i].key ? v[k++] : scratch[i++];
}

static void sort_halves(struct sort_item *v, uint32_t n, struct sort_item *scratch)
{
	if (n <= SORT_RUN) {
		sort_radix(v, n, scratch);
		return;
	}
	sort_halves(v, n / 2, scratch);
	sort_halves(v + n / 2, n - n / 2, scratch);
	sort_merge_halves(v, n / 2, n, scratch);
}

void sort_items(struct sort_item *v, uint32_t n)
{
	enum { FEW = 32 }; /* insertion takes fewer steps than clearing one digit's counters */
	if (n < FEW) {
		sort_by_insertion(v, n);
		return;
	}
	if (sort_is_sorted(v, n))
		return;
	struct sort_item *scratch = NEW_ARRAY_RAW(MAX(MIN(n, SORT_RUN), n / 2), struct sort_item);
	sort_halves(v, n, scratch);
	mem_free(scratch);
}

enum {
	SORT_REACH = 8,  /* how far back a row is moved within its run, so that this stays linear; one that belongs further back begins a run */
	SORT_MERGES = 8, /* so many merges of all rows cost what the radix sort does */
};

struct sort_runs {
	uint32_t *begin; /* of each run; begin[n] is the end of the last */
	uint32_t n, cap;
};

/* Takes rows that are a little out of order back to their place. False: there are too many runs. */
static bool sort_find_runs(struct sort_runs *r, uint32_t *row, uint32_t n, const int64_t *key)
{
	uint32_t begin = 0;
	MEM_PUSH(r->begin, r->n, r->cap, 0);
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t x = row[i];
		const int64_t at = key[x];
		if (key[row[i - 1]] <= at)
			continue;
		if (i - begin > SORT_REACH && key[row[i - SORT_REACH - 1]] > at) {
			if (r->n == 1u << SORT_MERGES)
				return false;
			begin = i;
			MEM_PUSH(r->begin, r->n, r->cap, i);
			continue;
		}
		uint32_t k = i;
		for (; k > begin && key[row[k - 1]] > at; k--)
			row[k] = row[k - 1];
		row[k] = x;
	}
	MEM_GROW(r->begin, r->cap, r->n + 1);
	r->begin[r->n] = n;
	return true;
}

/* Merges row[from..middle) and row[middle..end), each in order. Only what overlaps is moved. */
static void sort_merge(uint32_t *row, uint32_t from, uint32_t middle, uint32_t end, const int64_t *key, uint32_t *scratch)
{
	const int64_t first = key[row[middle]], last = key[row[middle - 1]];
	from = FIRST_WHERE(i, from, middle, key[row[i]] > first);
	end = FIRST_WHERE(i, middle, end, key[row[i]] >= last);
	const uint32_t n = middle - from;
	uint32_t left = 0, right = middle, to = from;
	memcpy(scratch, row + from, n * sizeof *row);
	while (left < n && right < end)
		row[to++] = key[row[right]] < key[scratch[left]] ? row[right++] : scratch[left++];
	memcpy(row + to, scratch + left, (n - left) * sizeof *row);
}

bool sort_runs(uint32_t *row, uint32_t n, const int64_t *key)
{
	if (n < 2)
		return true;
	struct sort_runs r = {0};
	const bool few = sort_find_runs(&r, row, n, key);
	uint32_t *scratch = few && r.n > 1 ? NEW_ARRAY_RAW(n, uint32_t) : NULL;
	while (few && r.n > 1) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < r.n; i += 2) {
			if (i + 1 < r.n)
				sort_merge(row, r.begin[i], r.begin[i + 1], r.begin[i + 2], key, scratch);
			r.begin[kept++] = r.begin[i];
		}
		r.begin[kept] = n;
		r.n = kept;
	}
	mem_free(scratch);
	mem_free(r.begin);
	return few;
}

static int sort_compare_i64(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return COMPARE(*x, *y);
}

void sort_i64(int64_t *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof *v, sort_compare_i64);
}
