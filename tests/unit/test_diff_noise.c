/* Whether two sets of step times differ (query/diff_noise.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "query/diff_noise.h"

#include <math.h>

static void assert_near(double got, double want, double percent)
{
	if (fabs(got - want) > fabs(want) * percent / 100)
		fail_msg("%.6g, %.6g was expected", got, want);
}

/* Quantiles of Student's t from any table. */
static void test_quantiles(void **state)
{
	static const double rows[][2] = {{1, 12.7062}, {2, 4.30265}, {3, 3.18245}, {4, 2.77645}, {5, 2.57058}, {8, 2.30600}, {10, 2.22814}, {30, 2.04227}, {120, 1.97993}, {1e9, 1.95996}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_near(diff_noise_t975(rows[i][0]), rows[i][1], 0.3);
	for (double df = 1; df < 50; df += 0.1)
		assert_true(diff_noise_t975(df) > diff_noise_t975(df + 0.1));
}

static void test_independent_steps(void **state)
{
	(void)state;
	assert_near(diff_noise_worth(30, 0), 30, 0);
	assert_near(diff_noise_worth(30, 0.5), 10, 1e-9);
	assert_near(diff_noise_worth(30, -0.5), 30, 0);
	assert_near(diff_noise_worth(30, 0.99), 2, 0);
}

/* {99, 101} and {199, 201}: variances of the means are 1 and 1, so that the interval is t(2) sqrt(2). */
static void test_two_and_two(void **state)
{
	static const int64_t a[] = {99, 101}, b[] = {199, 201};
	(void)state;
	struct diff_noise n = diff_noise_of(a, 2, b, 2);
	assert_true(n.known);
	assert_near(n.half_ns, 4.30265 * sqrt(2), 0.01);
	assert_near(n.least_ns, (4.30265 + 0.841621) * sqrt(2), 0.01);
}

static void test_unknown_and_none(void **state)
{
	static const int64_t a[] = {5, 5, 5}, b[] = {7, 7, 7};
	(void)state;
	assert_false(diff_noise_of(a, 1, b, 3).known);
	assert_false(diff_noise_of(a, 3, b, 1).known);
	struct diff_noise n = diff_noise_of(a, 3, b, 3);
	assert_true(n.known);
	assert_near(n.half_ns, 0, 0);
}

/* Of 2,000 pairs of series that do not differ, some 5 % are said to: at 10 steps each, independent, and less than 10 % where each step resembles the one before. */
static void test_false_alarms(void **state)
{
	(void)state;
	for (int correlated = 0; correlated < 2; correlated++) {
		unsigned alarms = 0;
		uint64_t x = 88172645463325252ull;
		for (int pair = 0; pair < 2000; pair++) {
			int64_t v[2][40];
			double mean[2] = {0};
			for (int s = 0; s < 2; s++) {
				double last = 0;
				for (int i = 0; i < 40; i++) {
					double noise = 0; /* nearly normal */
					for (int k = 0; k < 12; k++) {
						x ^= x << 13, x ^= x >> 7, x ^= x << 17;
						noise += (double)(x >> 11) / 9007199254740992.0;
					}
					last = correlated ? 0.5 * last + noise - 6 : noise - 6;
					v[s][i] = (int64_t)(1e6 + 1e4 * last);
					mean[s] += (double)v[s][i] / 40;
				}
			}
			struct diff_noise n = diff_noise_of(v[0], 40, v[1], 40);
			alarms += fabs(mean[1] - mean[0]) > n.half_ns;
		}
		assert_in_range(alarms, correlated ? 60 : 70, correlated ? 200 : 130);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_independent_steps),
		cmocka_unit_test(test_two_and_two),
		cmocka_unit_test(test_unknown_and_none),
		cmocka_unit_test(test_false_alarms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
