/* Binary search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/search.h"

#include <stdbool.h>
#include <stdint.h>

static void test_first_of_each_length(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 40; n++)
		for (uint32_t from = 0; from <= n; from++)
			assert_int_equal(FIRST_WHERE(i, 0, n, i >= from), from);
}

static void test_equal_values(void **state)
{
	(void)state;
	static const int64_t v[] = {-5, -5, 0, 3, 3, 3, 9};
	size_t n = sizeof v / sizeof v[0];
	assert_int_equal(FIRST_WHERE(i, 0, n, v[i] >= 3), 3);
	assert_int_equal(FIRST_WHERE(i, 0, n, v[i] > 3), 6);
	assert_int_equal(FIRST_WHERE(i, 0, n, v[i] >= -5), 0);
	assert_int_equal(FIRST_WHERE(i, 0, n, v[i] > 9), n);
}

static void test_part_of_an_array(void **state)
{
	(void)state;
	static const int v[] = {9, 9, 1, 2, 3, 0};
	assert_int_equal(FIRST_WHERE(i, 2, 5u, v[i] >= 3), 4);
	assert_int_equal(FIRST_WHERE(i, 2, 5u, v[i] >= 4), 5);
	assert_int_equal(FIRST_WHERE(i, 3, 3u, v[i] >= 0), 3); /* nothing to look at */
	assert_int_equal(FIRST_WHERE(i, 4, 3u, v[i] >= 0), 4); /* nor here: the beginning */
}

static bool looked(unsigned *times, uint32_t i, uint32_t from)
{
	++*times;
	return i >= from;
}

static void test_looks_at_few(void **state)
{
	(void)state;
	unsigned times = 0, ends = 0;
	uint32_t n = UINT32_MAX; /* the middle of a large range does not wrap */
	assert_int_equal(FIRST_WHERE(i, 0, (ends++, n), looked(&times, i, n - 7)), n - 7);
	assert_true(times <= 32);
	assert_int_equal(ends, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_of_each_length),
		cmocka_unit_test(test_equal_values),
		cmocka_unit_test(test_part_of_an_array),
		cmocka_unit_test(test_looks_at_few),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
