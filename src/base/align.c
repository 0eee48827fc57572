#include "base/align.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <assert.h>
#include <string.h>

/* Elements [from, to) of each side. */
struct align_range {
	uint32_t from[2], to[2];
	unsigned level;
};

struct align_task {
	const struct align_ask *ask;
	uint32_t *match;
	struct align_range *todo;
	size_t n, cap;
};

static uint32_t align_length(const struct align_range *r, int side)
{
	return r->to[side] - r->from[side];
}

static void align_trim(const struct align_task *t, struct align_range *r)
{
	const uint64_t *const *hash = t->ask->hash;
	while (align_length(r, 0) && align_length(r, 1) && hash[0][r->from[0]] == hash[1][r->from[1]])
		t->match[r->from[0]++] = r->from[1]++;
	while (align_length(r, 0) && align_length(r, 1) && hash[0][r->to[0] - 1] == hash[1][r->to[1] - 1])
		t->match[--r->to[0]] = --r->to[1];
}

/* ---- elements that each side has once ---- */

/* The side's elements by hash; *n gets how many hashes are there once, which come first. */
static struct sort_item *align_unique(const struct align_task *t, const struct align_range *r, int side, uint32_t *n)
{
	const uint32_t all = align_length(r, side);
	struct sort_item *v = NEW_ARRAY_RAW(all, struct sort_item);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < all; i++)
		v[i] = (struct sort_item){t->ask->hash[side][r->from[side] + i], r->from[side] + i, 0};
	sort_items(v, all);
	for (uint32_t i = 0, next; i < all; i = next) {
		next = i + 1;
		while (next < all && v[next].key == v[i].key)
			next++;
		if (next == i + 1)
			v[kept++] = v[i];
	}
	*n = kept;
	return v;
}

/* The longest ascending run through v[].tie, whose elements are moved to the front, in order; returns its length. v is in the order of A. */
static uint32_t align_ascending(struct sort_item *v, uint32_t n)
{
	uint32_t *last = NEW_ARRAY_RAW(n + 1, uint32_t), *before = NEW_ARRAY_RAW(n + 1, uint32_t), length = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = FIRST_WHERE(k, 0, length, v[last[k]].tie > v[i].tie);
		before[i] = at ? last[at - 1] : ALIGN_NONE;
		last[at] = i;
		length += at == length;
	}
	for (uint32_t k = length, i = length ? last[length - 1] : ALIGN_NONE; k-- > 0; i = before[i])
		last[k] = i;
	for (uint32_t k = 0; k < length; k++)
		v[k] = v[last[k]];
	mem_free(last);
	mem_free(before);
	return length;
}

/* The pairs of elements that both sides have once and that stand in one order: row is of A, tie of B. */
static struct sort_item *align_anchors(const struct align_task *t, const struct align_range *r, uint32_t *n)
{
	uint32_t na, nb, pairs = 0;
	struct sort_item *a = align_unique(t, r, 0, &na), *b = align_unique(t, r, 1, &nb);
	for (uint32_t i = 0, k = 0; i < na; i++) {
		while (k < nb && b[k].key < a[i].key)
			k++;
		if (k < nb && b[k].key == a[i].key)
			a[pairs++] = (struct sort_item){a[i].row, a[i].row, b[k].row};
	}
	mem_free(b);
	sort_items(a, pairs);
	*n = align_ascending(a, pairs);
	return a;
}

static void align_push(struct align_task *t, const struct align_range *r)
{
	MEM_GROW(t->todo, t->cap, t->n + 1);
	t->todo[t->n++] = *r;
}

/* Whether anchors have split the range. */
static bool align_split(struct align_task *t, const struct align_range *r)
{
	uint32_t n;
	struct sort_item *anchor = align_anchors(t, r, &n);
	struct align_range part = {.from = {r->from[0], r->from[1]}, .level = r->level + 1};
	for (uint32_t i = 0; i < n; i++) {
		t->match[anchor[i].row] = anchor[i].tie;
		part.to[0] = anchor[i].row;
		part.to[1] = anchor[i].tie;
		align_push(t, &part);
		part.from[0] = anchor[i].row + 1;
		part.from[1] = anchor[i].tie + 1;
	}
	part.to[0] = r->to[0];
	part.to[1] = r->to[1];
	if (n)
		align_push(t, &part);
	mem_free(anchor);
	return n > 0;
}

/* ---- dynamic programming ---- */

/* Where the best alignment of the first elements, up to a cell, comes from. */
enum { ALIGN_SKIP_A, ALIGN_SKIP_B, ALIGN_PAIR };

/* Cells of row i, of 1..n elements of A, are [lo, hi] of 0..m elements of B. */
struct align_band {
	uint64_t n, m, half;
};

static struct align_band align_band_of(uint64_t n, uint64_t m)
{
	const bool whole = n * m <= ALIGN_CELLS * (n + m);
	/* The band moves by m / n in a row, and is wider than that, so that rows overlap. */
	return (struct align_band){n, m, whole ? m : ALIGN_CELLS / 2 * (n + m) / n};
}

static uint64_t align_lo(const struct align_band *b, uint64_t i)
{
	const uint64_t middle = i * b->m / b->n;
	return middle > b->half ? middle - b->half : 0;
}

static uint64_t align_hi(const struct align_band *b, uint64_t i)
{
	const uint64_t middle = i * b->m / b->n;
	return b->m - middle < b->half ? b->m : middle + b->half;
}

/* Two bits a cell. */
static void align_set_way(uint8_t *way, uint64_t cell, unsigned from)
{
	way[cell / 4] = (uint8_t)(way[cell / 4] | from << cell % 4 * 2);
}

static unsigned align_way(const uint8_t *way, uint64_t cell)
{
	return way[cell / 4] >> cell % 4 * 2 & 3;
}

static unsigned align_fit(const struct align_ask *ask, uint32_t a, uint32_t b)
{
	if (ask->hash[0][a] == ask->hash[1][b])
		return ALIGN_SAME;
	const unsigned fit = ask->fit ? ask->fit(ask->context, a, b) : 0;
	assert(fit < ALIGN_SAME);
	return fit;
}

/* The sums of row i, from those of the row before, which are right of its band those at its end. */
static void align_row(const struct align_task *t, const struct align_range *r, const struct align_band *band, uint64_t i, const uint64_t *above, uint64_t *sum, uint8_t *way, uint64_t first_cell)
{
	const uint64_t lo = align_lo(band, i), hi = align_hi(band, i), above_lo = i > 1 ? align_lo(band, i - 1) : 0, above_hi = i > 1 ? align_hi(band, i - 1) : band->m;
	for (uint64_t j = lo; j <= hi; j++) {
		uint64_t best = above[j < above_hi ? j : above_hi];
		unsigned from = ALIGN_SKIP_A;
		if (j > lo && sum[j - 1] > best) {
			best = sum[j - 1];
			from = ALIGN_SKIP_B;
		}
		if (j > above_lo && j - 1 <= above_hi) {
			const unsigned fit = align_fit(t->ask, r->from[0] + (uint32_t)i - 1, r->from[1] + (uint32_t)j - 1);
			if (fit && above[j - 1] + fit > best) {
				best = above[j - 1] + fit;
				from = ALIGN_PAIR;
			}
		}
		sum[j] = best;
		align_set_way(way, first_cell + j - lo, from);
	}
}

static void align_best(const struct align_task *t, const struct align_range *r)
{
	const uint64_t n = align_length(r, 0), m = align_length(r, 1);
	const struct align_band band = align_band_of(n, m);
	uint64_t *first_cell = NEW_ARRAY_RAW(n + 2, uint64_t), *above = NEW_ARRAY(m + 1, uint64_t), *sum = NEW_ARRAY(m + 1, uint64_t);
	first_cell[1] = 0;
	for (uint64_t i = 1; i <= n; i++)
		first_cell[i + 1] = first_cell[i] + align_hi(&band, i) - align_lo(&band, i) + 1;
	uint8_t *way = NEW_ARRAY(first_cell[n + 1] / 4 + 1, uint8_t);
	for (uint64_t i = 1; i <= n; i++) {
		align_row(t, r, &band, i, above, sum, way, first_cell[i]);
		uint64_t *swap = above;
		above = sum;
		sum = swap;
	}
	for (uint64_t i = n, j = m; i && j;) {
		const uint64_t lo = align_lo(&band, i), hi = align_hi(&band, i);
		/* Right of the band, elements of B alone remain until its end. */
		j = j > hi ? hi : j;
		assert(j >= lo);
		const unsigned from = align_way(way, first_cell[i] + j - lo);
		if (from == ALIGN_PAIR)
			t->match[r->from[0] + --i] = r->from[1] + (uint32_t)--j;
		else if (from == ALIGN_SKIP_A)
			i--;
		else
			j--;
	}
	mem_free(first_cell);
	mem_free(above);
	mem_free(sum);
	mem_free(way);
}

void align_sequences(const struct align_ask *ask, uint32_t *match)
{
	struct align_task t = {.ask = ask, .match = match};
	memset(match, 0xff, ask->n[0] * sizeof *match);
	align_push(&t, &(struct align_range){.to = {ask->n[0], ask->n[1]}});
	while (t.n) {
		struct align_range r = t.todo[--t.n];
		align_trim(&t, &r);
		const uint64_t n = align_length(&r, 0), m = align_length(&r, 1);
		if (!n || !m)
			continue;
		if (n * m <= ALIGN_CELLS * (n + m) || r.level == ALIGN_LEVELS || !align_split(&t, &r))
			align_best(&t, &r);
	}
	mem_free(t.todo);
}
