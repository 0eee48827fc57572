/* Mean, deviation and quartiles, against Python's statistics, and quartiles by hand. */
#include "test.h"

#include "base/spread.h"

#include <math.h>

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

/* So many that they are sorted another way: -2000, -1999.5, ... 1999.5 in some order, some of them twice. */
static void test_many(void **state)
{
	(void)state;
	enum { N = 8000, STEP = 4177 };
	static double v[N + 2];
	for (unsigned i = 0; i < N; i++)
		v[i] = (double)(i * STEP % N) / 2 - 2000;
	v[N] = -2000;
	v[N + 1] = 1999.5;
	struct spread s = spread_of(v, N + 2);
	for (unsigned i = 1; i < N + 2; i++)
		assert_true(v[i - 1] <= v[i]);
	near(s.min, -2000);
	near(s.max, 1999.5);
	near(s.median, -0.25);
	near(s.mean, -0.25);
}

/* Zeros of both signs and values that are none get the same places among few values and among many. */
static void test_order(void **state)
{
	(void)state;
	enum { MANY = 4096 };
	static double v[MANY];
	for (unsigned n = 8; n <= MANY; n *= 512) {
		for (unsigned i = 0; i < n; i++)
			v[i] = i % 4 == 0 ? 0.0 : i % 4 == 1 ? -0.0 : i % 4 == 2 ? NAN : -1;
		spread_of(v, n);
		for (unsigned i = 0; i < n; i++) {
			const unsigned quarter = i * 4 / n;
			assert_true(quarter == 3 ? isnan(v[i]) : quarter == 0 ? v[i] == -1 : v[i] == 0 && !signbit(v[i]) == (quarter == 2));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_even), cmocka_unit_test(test_many), cmocka_unit_test(test_order), cmocka_unit_test(test_one_and_none)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
