/* Alignment of two sequences (base/align.h): against the whole table of dynamic programming, and of long ones against planted changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/align.h"
#include "base/mem.h"

#include <string.h>

static uint64_t align_seed = 7;
static uint64_t align_random(uint64_t below)
{
	align_seed ^= align_seed << 13;
	align_seed ^= align_seed >> 7;
	align_seed ^= align_seed << 17;
	return align_seed % below;
}

/* Elements of one tens digit fit, better where they are closer. */
static unsigned align_test_fit(const void *context, uint32_t a, uint32_t b)
{
	const struct align_ask *ask = context;
	const int64_t x = (int64_t)ask->hash[0][a], y = (int64_t)ask->hash[1][b];
	return x / 10 == y / 10 ? (unsigned)(20 - (x > y ? x - y : y - x)) : 0;
}

static unsigned align_test_worth(const struct align_ask *ask, uint32_t a, uint32_t b)
{
	return ask->hash[0][a] == ask->hash[1][b] ? ALIGN_SAME : ask->fit ? ask->fit(ask->context, a, b) : 0;
}

static uint64_t align_greatest_sum(const struct align_ask *ask)
{
	const size_t n = ask->n[0], m = ask->n[1];
	uint64_t *sum = NEW_ARRAY((n + 1) * (m + 1), uint64_t);
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			uint64_t best = sum[(i - 1) * (m + 1) + j - 1] + align_test_worth(ask, (uint32_t)i - 1, (uint32_t)j - 1);
			best = sum[(i - 1) * (m + 1) + j] > best ? sum[(i - 1) * (m + 1) + j] : best;
			best = sum[i * (m + 1) + j - 1] > best ? sum[i * (m + 1) + j - 1] : best;
			sum[i * (m + 1) + j] = best;
		}
	const uint64_t greatest = sum[(n + 1) * (m + 1) - 1];
	mem_free(sum);
	return greatest;
}

/* The sum of an answer, which must ascend and pair nothing that does not fit. */
static uint64_t align_checked_sum(const struct align_ask *ask, const uint32_t *match)
{
	uint64_t sum = 0, next = 0;
	for (uint32_t a = 0; a < ask->n[0]; a++) {
		if (match[a] == ALIGN_NONE)
			continue;
		assert_true(match[a] >= next && match[a] < ask->n[1]);
		assert_true(align_test_worth(ask, a, match[a]) > 0);
		sum += align_test_worth(ask, a, match[a]);
		next = (uint64_t)match[a] + 1;
	}
	return sum;
}

static void test_short_ones_are_best(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 1000; round++) {
		uint64_t v[2][ALIGN_CELLS];
		uint32_t match[ALIGN_CELLS];
		struct align_ask ask = {.hash = {v[0], v[1]}, .fit = round % 3 ? align_test_fit : NULL};
		const uint64_t symbols = 1 + align_random(round % 2 ? 8 : 60);
		ask.context = &ask;
		for (int s = 0; s < 2; s++) {
			ask.n[s] = (uint32_t)align_random(ALIGN_CELLS + 1);
			for (uint32_t i = 0; i < ask.n[s]; i++)
				v[s][i] = align_random(symbols);
		}
		align_sequences(&ask, match);
		assert_int_equal(align_checked_sum(&ask, match), align_greatest_sum(&ask));
	}
}

static void test_equal_ends_first(void **state)
{
	static const uint64_t a[] = {5}, b[] = {2, 5, 5};
	struct align_ask ask = {.hash = {a, b}, .n = {1, 3}};
	uint32_t match[1];
	(void)state;
	align_sequences(&ask, match);
	assert_int_equal(match[0], 2); /* though it fits the one before as well */
	ask.n[1] = 0;
	align_sequences(&ask, match);
	assert_int_equal(match[0], ALIGN_NONE);
	ask.n[0] = 0;
	align_sequences(&ask, match);
}

/* Between ends that differ, the first of two equal elements is paired, of B as of A. */
static void test_of_equal_sums_the_earlier(void **state)
{
	static const uint64_t one[] = {1, 5, 2}, two[] = {3, 5, 5, 4};
	uint32_t match[4];
	(void)state;
	align_sequences(&(struct align_ask){.hash = {one, two}, .n = {3, 4}}, match);
	assert_int_equal(match[1], 1);
	align_sequences(&(struct align_ask){.hash = {two, one}, .n = {4, 3}}, match);
	assert_int_equal(match[1], 1);
	assert_int_equal(match[2], ALIGN_NONE);
}

/* B is A with one of `every` elements taken out, put in or changed. truth[a] = where the element of A stands in B. */
static uint32_t align_plant(const uint64_t *a, uint32_t n, uint64_t every, uint64_t symbols, uint64_t *b, uint32_t *truth)
{
	uint32_t m = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t what = align_random(3 * every);
		truth[i] = ALIGN_NONE;
		if (what == 0)
			continue;
		if (what == 1)
			b[m++] = symbols + align_random(symbols);
		if (what == 2) {
			b[m++] = symbols + align_random(symbols);
			continue;
		}
		truth[i] = m;
		b[m++] = a[i];
	}
	return m;
}

/* Of `n` elements of `symbols` kinds, at least `least` of 1,000 that are in both are paired, and none more than both have. */
static void align_check_long(uint32_t n, uint64_t symbols, uint64_t every, uint64_t least)
{
	uint64_t *a = NEW_ARRAY(n, uint64_t), *b = NEW_ARRAY(2 * (size_t)n, uint64_t);
	uint32_t *truth = NEW_ARRAY(n, uint32_t), *match = NEW_ARRAY(n, uint32_t);
	uint64_t right = 0, both = 0, paired = 0;
	for (uint32_t i = 0; i < n; i++)
		a[i] = align_random(symbols);
	struct align_ask ask = {.hash = {a, b}, .n = {n, align_plant(a, n, every, symbols, b, truth)}};
	align_sequences(&ask, match);
	(void)align_checked_sum(&ask, match);
	for (uint32_t i = 0; i < n; i++) {
		both += truth[i] != ALIGN_NONE;
		right += truth[i] != ALIGN_NONE && match[i] == truth[i];
		paired += match[i] != ALIGN_NONE;
	}
	assert_true(paired * 1000 >= both * least);
	if (symbols > 1000)
		assert_true(right * 1000 >= both * least);
	mem_free(a);
	mem_free(b);
	mem_free(truth);
	mem_free(match);
}

static void test_long_ones(void **state)
{
	(void)state;
	align_check_long(1000000, 1000000, 100, 1000); /* a third are there once */
	align_check_long(1000000, 10000, 100, 997);    /* none is */
	align_check_long(1000000, 4, 1000, 990);       /* layers that look alike */
	align_check_long(1000, 30, 20, 980);
}

/* A long sequence of which one element of ten fits its counterpart without being equal, and has no equal one. */
static void test_a_long_one_that_fits(void **state)
{
	enum { N = 200000 };
	uint64_t *a = NEW_ARRAY(N, uint64_t), *b = NEW_ARRAY(N, uint64_t);
	uint32_t *match = NEW_ARRAY(N, uint32_t);
	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		a[i] = 10 * align_random(20);
		b[i] = a[i] + (i % 10 == 3 ? 1 + align_random(9) : 0);
	}
	struct align_ask ask = {.hash = {a, b}, .n = {N, N}, .fit = align_test_fit};
	ask.context = &ask;
	align_sequences(&ask, match);
	(void)align_checked_sum(&ask, match);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(match[i], i);
	mem_free(a);
	mem_free(b);
	mem_free(match);
}

/* A sequence that splits at its middle alone, into two alike of which each does: more often than ALIGN_LEVELS times within each other. In B one element of a hundred is another. */
static void test_split_within_split(void **state)
{
	enum { LEAF = 300, SPLITS = ALIGN_LEVELS + 2, N = (LEAF + 1) << SPLITS };
	uint64_t *a = NEW_ARRAY(N, uint64_t), *b = NEW_ARRAY(N, uint64_t);
	uint32_t *match = NEW_ARRAY(N, uint32_t), right = 0, n = LEAF;
	(void)state;
	for (uint32_t i = 0; i < LEAF; i++)
		a[i] = i % 7;
	for (unsigned k = 0; k < SPLITS; k++) {
		a[n] = 1000 + k;
		memcpy(a + n + 1, a, n * sizeof *a);
		n = 2 * n + 1;
	}
	assert_int_equal(n, N - 1);
	for (uint32_t i = 0; i < n; i++)
		b[i] = a[i] < 1000 && i % 100 == 50 ? 100 + a[i] : a[i];
	align_sequences(&(struct align_ask){.hash = {a, b}, .n = {n, n}}, match);
	for (uint32_t i = 0; i < n; i++)
		right += match[i] == i;
	assert_true(right >= n / 100 * 97);
	mem_free(a);
	mem_free(b);
	mem_free(match);
}

/* What has nothing in common, or all in another order, ends as soon. */
static void test_long_ones_that_differ(void **state)
{
	enum { N = 1000000 };
	uint64_t *a = NEW_ARRAY(N, uint64_t), *b = NEW_ARRAY(N, uint64_t);
	uint32_t *match = NEW_ARRAY(N, uint32_t);
	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		a[i] = i;
		b[i] = N + i % 1000;
	}
	align_sequences(&(struct align_ask){.hash = {a, b}, .n = {N, N}}, match);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(match[i], ALIGN_NONE);
	for (uint32_t i = 0; i < N; i++)
		b[i] = N - 1 - i;
	struct align_ask ask = {.hash = {a, b}, .n = {N, N}};
	align_sequences(&ask, match);
	assert_true(align_checked_sum(&ask, match) >= ALIGN_SAME);
	/* 3 elements against all. */
	ask.n[0] = 3;
	align_sequences(&ask, match);
	assert_int_equal(align_checked_sum(&ask, match), ALIGN_SAME);
	mem_free(a);
	mem_free(b);
	mem_free(match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_ones_are_best), cmocka_unit_test(test_equal_ends_first), cmocka_unit_test(test_of_equal_sums_the_earlier), cmocka_unit_test(test_long_ones), cmocka_unit_test(test_a_long_one_that_fits),
		cmocka_unit_test(test_split_within_split), cmocka_unit_test(test_long_ones_that_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
