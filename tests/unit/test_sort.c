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
		cmocka_unit_test(test_signed_keys),
		cmocka_unit_test(test_rounding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
