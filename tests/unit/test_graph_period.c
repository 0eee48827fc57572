/* The block that work repeats, against a look at each block size, piece by piece. */
#include "test.h"

#include "analysis/graph/graph_period.h"
#include "base/mem.h"

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* The longest run of pieces that equal the one `block` later; *first gets where it begins. */
static uint32_t longest_run(const struct graph_sequence *w, uint32_t block, uint32_t *first)
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

static struct graph_period brute_force(const struct graph_sequence *w)
{
	for (uint32_t block = 1; block <= w->n / 2; block++) {
		uint32_t first = 0;
		const uint32_t run = longest_run(w, block, &first), blocks = run / block + 1;
		if (run >= block && blocks * block * 100 >= w->n * GRAPH_PERIOD_LEAST_PCT)
			return (struct graph_period){block, first, blocks};
	}
	return (struct graph_period){0};
}

/* Blocks behind and before other pieces, with a change here and there; or anything of few names. */
static void random_work(struct graph_sequence *w, uint32_t *seed)
{
	const uint32_t head = next_random(seed) % 6, block = 1 + next_random(seed) % 9, names = 1 + next_random(seed) % 4, repeats = next_random(seed) % 3;
	w->n = next_random(seed) % 60;
	for (uint32_t i = 0; i < w->n; i++) {
		w->key[i] = next_random(seed) % names;
		if (repeats && i >= head + block && i < w->n - head)
			w->key[i] = w->key[i - block];
	}
	if (w->n && next_random(seed) % 4 == 0)
		w->key[next_random(seed) % w->n] = 99;
}

static void test_brute_force(void **state)
{
	uint64_t key[60];
	struct graph_sequence w = {.key = key};
	uint32_t seed = 1, found = 0;
	for (int round = 0; round < 50000; round++) {
		random_work(&w, &seed);
		const struct graph_period want = brute_force(&w), got = graph_period_find(&w);
		assert_int_equal(got.pieces, want.pieces);
		assert_int_equal(got.blocks, want.blocks);
		assert_int_equal(got.first, want.first);
		found += want.pieces > 0;
	}
	assert_in_range(found, 10000, 40000);
}

/* A million pieces that never repeat, and as many that repeat a block too long to be looked for: each is looked at a few times. */
static void test_long(void **state)
{
	enum { N = 1000000 };
	struct graph_sequence w = {.key = NEW_ARRAY(N, uint64_t), .n = N};
	for (uint32_t i = 0; i < N; i++)
		w.key[i] = i < N / 2 ? 0 : i;
	assert_int_equal(graph_period_find(&w).pieces, 0);
	for (uint32_t i = 0; i < N; i++)
		w.key[i] = i % (GRAPH_PERIOD_MOST + 1);
	assert_int_equal(graph_period_find(&w).pieces, 0);
	for (uint32_t i = 0; i < N; i++)
		w.key[i] = i % GRAPH_PERIOD_MOST;
	assert_int_equal(graph_period_find(&w).blocks, N / GRAPH_PERIOD_MOST);
	mem_free(w.key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_brute_force), cmocka_unit_test(test_long)};
	return RUN_TESTS(tests);
}
