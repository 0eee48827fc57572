#include "analysis/graph/graph_period.h"

/* The longest run of pieces that equal the one `block` later; *first gets where it begins. */
static uint32_t graph_longest_run(const struct graph_sequence *w, uint32_t block, uint32_t *first)
{
	uint32_t longest = 0, run = 0;
	for (uint32_t i = 0; i + block < w->n; i++) {
		run = w->key[i] == w->key[i + block] ? run + 1 : 0;
		if (run > longest) {
			longest = run;
			*first = i + 1 - run;
		}
	}
	return longest;
}

struct graph_period graph_period_find(const struct graph_sequence *w)
{
	for (uint32_t block = 1; block <= w->n / 2 && block <= GRAPH_PERIOD_MOST; block++) {
		uint32_t first = 0;
		const uint32_t run = graph_longest_run(w, block, &first), blocks = run / block + 1;
		if (run >= block && (uint64_t)blocks * block * 100 >= (uint64_t)w->n * GRAPH_PERIOD_LEAST_PCT)
			return (struct graph_period){block, first, blocks};
	}
	return (struct graph_period){0};
}
