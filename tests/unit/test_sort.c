/* Radix sort and rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/round.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>

static uint64_t seed = 7;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void test_sorts_and_keeps_order_of_equals(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint32_t n = (uint32_t)(rnd() % 3000);
		unsigned shift = (unsigned)(rnd() % 64);
		struct sort_item *v = calloc(n + 1, sizeof *v);
		for (uint32_t i = 0; i < n; i++)
			v[i] = (struct sort_item){rnd() >> shift, i, i * 3};
		sort_items(v, n);
		for (uint32_t i = 1; i < n; i++) {
			assert_true(v[i - 1].key < v[i].key || (v[i - 1].key == v[i].key && v[i - 1].row < v[i].row));
			assert_int_equal(v[i].tie, v[i].row * 3);
		}
		assert_true(sort_is_sorted(v, n));
		free(v);
	}
}

/* Rows of few runs, somewhat out of order, and of none. */
static void test_runs(void **state)
{
	(void)state;
	unsigned merged = 0, refused = 0;
	for (unsigned round = 0; round < 400; round++) {
		const uint32_t n = (uint32_t)(rnd() % 5000), runs = 1 + (uint32_t)(rnd() % 40), jitter = (uint32_t)(rnd() % 8), values = round % 3 ? 1u << 20 : 50;
		const int wild = round % 10 == 9;
		int64_t *key = calloc(n + 1, sizeof *key);
		uint32_t *row = calloc(n + 1, sizeof *row);
		struct sort_item *want = calloc(n + 1, sizeof *want);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t at = i % (n / runs + 1);
			key[i] = (int64_t)(wild ? rnd() % values : (uint64_t)at * values / n + rnd() % (jitter + 1)) - values / 2;
			row[i] = i;
			want[i] = (struct sort_item){sort_key_i64(key[i]), i, 0};
		}
		sort_items(want, n);
		const bool sorted = sort_runs(row, n, key);
		merged += sorted && runs > 1;
		refused += !sorted;
		for (uint32_t i = 0; i < n && sorted; i++)
			assert_int_equal(row[i], want[i].row);
		free(key);
		free(row);
		free(want);
	}
	assert_true(merged > 200 && refused > 5);
}

static uint64_t large_key(int kind, uint32_t i, uint32_t n)
{
	switch (kind) {
	case 0: return rnd();
	case 1: return rnd() % 1000;                /* most are equal */
	case 2: return n - i;
	case 3: return i + rnd() % 100000;          /* late by so much */
	case 4: return i % 2 ? i : i / 300000;      /* each run overlaps with all others */
	default: return i < n / 2 ? i + n : i - n / 2; /* the second half before the first */
	}
}

/* More than one run, so that runs are merged. */
static void test_sorts_large_tables(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {1 << 18, (1 << 18) + 1, 700001};
	for (int kind = 0; kind < 6; kind++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			const uint32_t n = sizes[s];
			uint64_t *key = calloc(n, sizeof *key), rows = 0;
			struct sort_item *v = calloc(n, sizeof *v);
			for (uint32_t i = 0; i < n; i++) {
				key[i] = large_key(kind, i, n);
				v[i] = (struct sort_item){key[i], i, ~i};
			}
			sort_items(v, n);
			bool good = true;
			for (uint32_t i = 0; i < n; i++) {
				good &= v[i].tie == ~v[i].row && v[i].row < n && key[v[i].row] == v[i].key;
				good &= !i || v[i - 1].key < v[i].key || (v[i - 1].key == v[i].key && v[i - 1].row < v[i].row);
				rows += v[i].row;
			}
			assert_true(good);
			assert_int_equal(rows, (uint64_t)n * (n - 1) / 2);
			free(v);
			free(key);
		}
}

static void test_signed_keys(void **state)
{
	(void)state;
	static const int64_t order[] = {INT64_MIN, -5, -1, 0, 1, 7, INT64_MAX};
	for (size_t i = 1; i < sizeof order / sizeof order[0]; i++)
		assert_true(sort_key_i64(order[i - 1]) < sort_key_i64(order[i]));
}

static void test_rounding(void **state)
{
	(void)state;
	assert_int_equal(round_us(1499), 1);
	assert_int_equal(round_us(1500), 2);
	assert_int_equal(round_us(2500), 2);
	assert_int_equal(round_us(2501), 3);
	assert_int_equal(round_us(-1500), -2);
	assert_int_equal(round_us(-2500), -2);
	assert_int_equal(round_us(INT64_MAX), INT64_MAX / 1000 + 1);
	assert_true(round_digits(2.675, 2) == 2.67);
	assert_true(round_digits(0.025, 2) == 0.03);
	assert_true(round_digits(0.125, 2) == 0.12);
	assert_true(isnan(round_digits(NAN, 2)));
	assert_int_equal(round_even(2.5), 2);
	assert_int_equal(round_even(3.5), 4);
	assert_int_equal(round_even(-0.5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorts_and_keeps_order_of_equals),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_sorts_large_tables),
		cmocka_unit_test(test_signed_keys),
		cmocka_unit_test(test_rounding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
