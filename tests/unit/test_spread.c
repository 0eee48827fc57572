/* Mean, deviation and quartiles, against Python's statistics, and quartiles by hand. */
#include "test.h"

#include "base/spread.h"

static void near(double a, double b) { assert_true(a - b < 1e-9 && b - a < 1e-9); }

static void test_even(void **state)
{
	(void)state;
	double v[] = {403, 0, 9, 1, 1, 87};
	struct spread s = spread_of(v, 6);
	assert_int_equal(s.n, 6);
	near(s.mean, 83.5);
	near(s.sd, 160.142124377067);
	near(s.min, 0);
	near(s.p25, 1);
	near(s.median, 5);
	near(s.p75, 67.5);
	near(s.max, 403);
}

static void test_one_and_none(void **state)
{
	(void)state;
	double v[] = {2.5};
	struct spread s = spread_of(v, 1);
	near(s.sd, 0);
	near(s.p25, 2.5);
	near(s.p75, 2.5);
	s = spread_of(v, 0);
	assert_int_equal(s.n, 0);
	near(s.max, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_even), cmocka_unit_test(test_one_and_none)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
