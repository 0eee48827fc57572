/* The statistics of a gate (query/gate_stats.h), and its file (query/gate_file.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "query/gate_file.h"
#include "query/gate_stats.h"

#include <math.h>
#include <stdlib.h>

static void assert_near(double got, double want, double within)
{
	if (!(fabs(got - want) <= within))
		fail_msg("%.9g, %.9g was expected", got, want);
}

/* Of any table of Student's t: the value that is exceeded with probability p. */
static void test_student(void **state)
{
	static const struct { double p, df, t; } rows[] = {
		{0.25, 1, 1.0}, {0.025, 1, 12.7062}, {0.01, 2, 6.96456}, {0.025, 4, 2.77645}, {0.005, 5, 4.03214}, {0.01, 10, 2.76377}, {0.0005, 20, 3.84952}, {0.025, 120, 1.97993}, {0.025, 1e7, 1.95996},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_near(gate_t_above(rows[i].t, rows[i].df), rows[i].p, rows[i].p * 1e-4);
		assert_near(gate_t_of(rows[i].p, rows[i].df), rows[i].t, rows[i].t * 1e-5);
		assert_near(gate_t_above(-rows[i].t, rows[i].df), 1 - rows[i].p, 1e-5);
	}
	assert_near(gate_t_above(0, 3.5), 0.5, 1e-12);
	/* df need not be whole: with 2, P(T > t) = (1 - t / sqrt(2 + t^2)) / 2 */
	assert_near(gate_t_above(1.5, 2), (1 - 1.5 / sqrt(4.25)) / 2, 1e-12);
	assert_true(gate_t_above(2, 2.5) < gate_t_above(2, 2) && gate_t_above(2, 2.5) > gate_t_above(2, 3));
}

static void test_scatter(void **state)
{
	const double two[] = {1, 3}, ramp[] = {0, 1, 2, 3, 4}, same[] = {7, 7, 7};
	assert_near(gate_scatter_of(two, 2).sd, sqrt(2), 1e-12);
	assert_near(gate_scatter_of(two, 2).df, 1, 1e-12);
	/* a drift is no scatter: the standard deviation of 0 .. 4 is 1.58 */
	assert_near(gate_scatter_of(ramp, 5).sd, sqrt(0.5), 1e-12);
	assert_near(gate_scatter_of(ramp, 5).df, 64.0 / 22, 1e-12);
	assert_near(gate_scatter_of(same, 3).sd, 0, 0);
}

static void test_middle(void **state)
{
	const double one[] = {5}, two[] = {4, 8}, four[] = {1000, 2, 4, 0}, five[] = {1, 2, 3, 4, 1e9};
	assert_near(gate_middle(one, 1), 5, 0);
	assert_near(gate_middle(two, 2), 6, 1e-12);
	assert_near(gate_middle(four, 4), 3, 1e-12);
	/* of [0, 5), [1.25, 3.75): 3/4 of 2, all of 3, 3/4 of 4 */
	assert_near(gate_middle(five, 5), (0.75 * 2 + 3 + 0.75 * 4) / 2.5, 1e-12);
}

/* Holm's own rule, by hand: at 0.05, {0.01, 0.04, 0.03, 0.005} are compared with 1/4, 1/3, 1/2 of it: 0.005 and 0.01 are rejected, 0.03 is not, nor what is above. */
static void test_holm(void **state)
{
	const double p[] = {0.01, 0.04, 0.03, 0.005}, none[] = {0.02, 0.9};
	bool rejected[4];
	gate_holm(p, 4, 0.05, rejected);
	assert_true(rejected[0] && !rejected[1] && !rejected[2] && rejected[3]);
	gate_holm(none, 2, 0.03, rejected);
	assert_false(rejected[0] || rejected[1]);
}

/* Mann and Kendall: of n rising values S = n (n - 1) / 2. */
static void test_trend(void **state)
{
	const double rising[] = {1, 2, 3, 4, 5, 6, 7, 8}, mixed[] = {4, 2, 3, 1, 4, 2, 3, 1}, few[] = {1, 2, 3};
	const double z = (28 - 1) / sqrt(8.0 * 7 * 21 / 18);
	assert_near(gate_trend(rising, 8), erfc(z / sqrt(2)), 1e-12);
	assert_true(gate_trend(rising, 8) < 0.01 && gate_trend(mixed, 8) > 0.3);
	assert_near(gate_trend(few, 3), 1, 0);
}

/* What was read is written again, to the byte. */
static void test_file(void **state)
{
	const char text[] = "opscope gate 1\nconfiguration\n  GPU: NVIDIA A100: 80 GB\n  recorder: kineto\nmetric step_ns\nmetric op:my op\nanchor a b.json\n  step_ns 312100000.5 +- 120000\n"
	                    "  op:my op 8000000\nrun c.json\n  step_ns 1e-05\nconfiguration\nmetric kernels\n";
	struct gate_file f;
	struct err e;
	struct buf out = {0};
	assert_int_equal(gate_file_read(STR(text), "t", &f, &e), 0);
	assert_int_equal(f.n_blocks, 2);
	assert_true(str_eqc(f.block[0].fact[0].value, "NVIDIA A100: 80 GB"));
	assert_true(f.block[0].run[0].anchor && !f.block[0].run[1].anchor && str_eqc(f.block[0].run[0].path, "a b.json"));
	assert_near(f.block[0].run[0].v[0].error, 120000, 0);
	assert_near(f.block[0].run[0].v[1].value, 8e6, 0);
	assert_true(isnan(f.block[0].run[1].v[1].value));
	gate_file_put(&f, &out);
	struct gate_file cut;
	assert_int_equal(gate_file_read((struct str){text, strstr(text, "\nconfiguration\nmetric kernels") - text}, "t", &cut, &e), 0); /* no line end behind the last line */
	assert_int_equal(cut.block[0].n_runs, 2);
	gate_file_release(&cut);
	assert_int_equal(out.n, sizeof text - 1);
	assert_memory_equal(out.p, text, out.n);
	buf_release(&out);
	gate_file_release(&f);
}

static void test_bad_files(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{"", "line 1"}, {"{}", "line 1"}, {"opscope gate 2\n", "version 2"}, {"opscope gate 1\nrun a\n", "line 2"}, {"opscope gate 1\nconfiguration\nmetric a\nmetric a\n", "line 4"},
		{"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns -1\n", "line 5"}, {"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns nan\n", "line 5"},
		{"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  b 1\n", "line 5"}, {"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns 1 +- x\n", "line 5"},
		{"opscope gate 1\nconfiguration\nmetric a\nrun x\n", "step_ns before its first run"}, {"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\nrun y\n", "step_ns of the run above"},
		{"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns 0\n", "above 0"}, {"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns 1e19\n", "1e18"}, {"opscope gate 1\n  GPU: x\n", "line 2"},
		{"opscope gate 1\nconfiguration\nmetric a\n  GPU: x\n", "line 4"}, {"opscope gate 1\nconfiguration\nrun x\n", "line 3"}, {"opscope gate 1\nnonsense\n", "line 2"}, {"opscope gate 1\nconfiguration\nmetric step_ns\nrun x\n  step_ns 1\nmetric a\n", "line 6"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct gate_file f;
		struct err e = {0};
		assert_int_equal(gate_file_read(str_from(rows[i].text), "t", &f, &e), -1);
		if (!strstr(e.msg, rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].text, e.msg);
		gate_file_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student), cmocka_unit_test(test_scatter), cmocka_unit_test(test_middle), cmocka_unit_test(test_holm), cmocka_unit_test(test_trend), cmocka_unit_test(test_file),
		cmocka_unit_test(test_bad_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
