#include "analysis/graph/graph_period.h"

#include "base/mem.h"

/* z[i], i > 0: the length of the longest common prefix of v and v + i; z[0] = 0 (Gusfield, "Algorithms on Strings, Trees and Sequences", 1.4). */
static uint32_t *graph_common_begins(const uint64_t *v, uint32_t n)
{
	uint32_t *z = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 1, from = 0, to = 0; i < n; i++) {
		uint32_t k = 0;
		if (i < to)
			k = z[i - from] < to - i ? z[i - from] : to - i;
		while (i + k < n && v[k] == v[i + k])
			k++;
		z[i] = k;
		if (i + k > to) {
			from = i;
			to = i + k;
		}
	}
	return z;
}

/* back[b], 0 < b <= most: how many pieces before `at`, counted backwards, equal the pieces b later. */
static uint32_t *graph_common_ends(const uint64_t *v, uint32_t n, uint32_t at, uint32_t most)
{
	const uint32_t end = at + most < n ? at + most : n;
	uint64_t *turned = NEW_ARRAY_RAW((size_t)at + end, uint64_t);
	for (uint32_t i = 0; i < at; i++)
		turned[i] = v[at - 1 - i];
	for (uint32_t i = 0; i < end; i++)
		turned[at + i] = v[end - 1 - i];
	uint32_t *z = graph_common_begins(turned, at + end), *back = NEW_ARRAY((size_t)most + 1, uint32_t);
	for (uint32_t b = 1; b <= most && at + b <= end; b++) {
		const uint32_t k = at ? z[at + end - (at + b)] : 0;
		back[b] = k < at ? k : at;
	}
	mem_free(turned);
	mem_free(z);
	return back;
}

/* Repeated blocks are a run of pieces that equal the pieces one block later. The run leaves out at most 100 - GRAPH_PERIOD_LEAST_PCT of the work, so that it
 * contains the piece at that share of the work (`at`), whatever the block. So each size of block needs only the run around `at`. */
struct graph_period graph_period_find(const struct graph_sequence *w)
{
	const uint32_t most = w->n / 2 < GRAPH_PERIOD_MOST ? w->n / 2 : GRAPH_PERIOD_MOST, at = (uint32_t)((uint64_t)w->n * (100 - GRAPH_PERIOD_LEAST_PCT) / 100);
	struct graph_period found = {0};
	if (!most)
		return found;
	uint32_t *ahead = graph_common_begins(w->key + at, w->n - at), *back = graph_common_ends(w->key, w->n, at, most);
	for (uint32_t block = 1; block <= most && !found.pieces; block++) {
		const uint32_t run = back[block] + ahead[block], blocks = run / block + 1;
		if (run >= block && (uint64_t)blocks * block * 100 >= (uint64_t)w->n * GRAPH_PERIOD_LEAST_PCT)
			found = (struct graph_period){block, at - back[block], blocks};
	}
	mem_free(ahead);
	mem_free(back);
	return found;
}
