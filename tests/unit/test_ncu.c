/* What Nsight Compute prints as CSV, and the names of kernels in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "open/counters_join.h"

static void test_units(void **state)
{
	static const struct { const char *unit, *base; double scale; } is[] = {
		{"byte", "byte", 1}, {"Kbyte", "byte", 1e3}, {"Mbyte", "byte", 1e6}, {"Gbyte/second", "byte/second", 1e9}, {"byte/nsecond", "byte/second", 1e9}, {"Mbyte/s", "byte/second", 1e6},
		{"ns", "ns", 1}, {"nsecond", "ns", 1}, {"us", "ns", 1e3}, {"usecond", "ns", 1e3}, {"msecond", "ns", 1e6}, {"second", "ns", 1e9}, {"Ghz", "hz", 1e9}, {"cycle/nsecond", "cycle/second", 1e9},
		{"%", "%", 1}, {"", "", 1}, {"inst", "inst", 1}, {"inst/cycle", "inst/cycle", 1}, {"register/thread", "register/thread", 1}, {"SM", "SM", 1}, {"K", "K", 1},
	};
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		struct buf b = {0};
		assert_true(ncu_unit(str_from(is[i].unit), &b) == is[i].scale);
		assert_true(str_eqc(buf_view(&b), is[i].base));
		buf_release(&b);
	}
}

static void test_names(void **state)
{
	static const struct { const char *name, *base; } is[] = {
		{"void at::<unnamed>::gather<16, long>(char *, const T2 *)", "gather"},
		{"void at::native::(anonymous namespace)::gather<16, f(int)::{lambda()#1}>(char*)", "gather"},
		{"void at::native::reduce<512, 1, decltype(a->b)>(int)", "reduce"},
		{"std::enable_if<(a), void>::type ns::scale<float>(float*)", "scale"},
		{"nvjet_sm90_tst_192x128", "nvjet_sm90_tst_192x128"}, {"scale(float *)", "scale"}, {"void scale (float *)", "scale"}, {"gather", "gather"}, {"", ""}, {"<", "<"}, {"(", "("}, {">>", ">>"},
	};
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++)
		assert_true(str_eqc(counters_base_name(str_from(is[i].name)), is[i].base));
}

#define RAW "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"launch__grid_size\",\"dram__bytes.sum\",\"gpu__time_duration.sum\"\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"us\"\n"
#define LONG "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"

#define ROW "\"0\",\"7\",\"f\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"1\",\"2\",\"3\"\n"

static void expect(const struct ncu *n, uint32_t launch, uint32_t i, const char *metric, const char *unit, double v)
{
	const struct ncu_value *x = &n->value[n->launch[launch].first + i];
	assert_true(i < n->launch[launch].n);
	assert_true(str_eqc(intern_get(&n->strings, x->metric), metric));
	assert_true(str_eqc(intern_get(&n->strings, n->unit[x->metric]), unit));
	assert_true(x->value == v);
}

static void test_raw(void **state)
{
	struct ncu n;
	struct err e = {0};
	static const char text[] = "==PROF== Connected\nloss 1, 2\n" RAW "\"0\",\"7\",\"void f<int, \"\"x\"\">(int)\",\"(32, 2, 1)\",\"(4, 1, 1)\",\"0\",\"4\",\"1,234.5\",\"3\"\r\n"
	                           "the program says\n\"1\",\"7\",\"g\",\"(1, 1, 1)\",\"(5, 6, 7)\",\"0\",\"9\",\"n/a\",\"0.5\"\n\"2\",\"7\",\"cut\",\"(1, 1\n==PROF== Disconnected\n";
	assert_int_equal(ncu_read_text(&n, str_from(text), "a.csv", &e), 0);
	assert_int_equal(n.n, 2);
	assert_int_equal(n.odd, 1);
	assert_true(str_eqc(intern_get(&n.strings, n.launch[0].name), "void f<int, \"x\">(int)"));
	assert_int_equal(n.launch[0].block[1], 2);
	assert_int_equal(n.launch[1].grid[2], 7);
	assert_int_equal(n.launch[0].n, 2);
	expect(&n, 0, 0, "dram__bytes.sum", "byte", 1234.5e6);
	expect(&n, 0, 1, "gpu__time_duration.sum", "ns", 3000);
	assert_int_equal(n.launch[1].n, 1);
	expect(&n, 1, 0, "gpu__time_duration.sum", "ns", 500);
	ncu_release(&n);
}

static void test_long(void **state)
{
	struct ncu n;
	struct err e = {0};
	static const char text[] = LONG "\"0\",\"7\",\"f\",\"(32, 1, 1)\",\"(4, 1, 1)\",\"0\",\"Command line profiler metrics\",\"dram__bytes_read.sum\",\"Kbyte\",\"2\"\n"
	                                "\"0\",\"7\",\"f\",\"(32, 1, 1)\",\"(4, 1, 1)\",\"0\",\"Occupancy\",\"Achieved Occupancy\",\"%\",\"48.5\"\n"
	                                "\"0\",\"7\",\"f\",\"(32, 1, 1)\",\"(4, 1, 1)\",\"0\",\"SpeedOfLight\",\"\",\"\",\"\"\n"
	                                "\"1\",\"7\",\"f\",\"(32, 1, 1)\",\"(4, 1, 1)\",\"0\",\"Command line profiler metrics\",\"dram__bytes_read.sum\",\"Mbyte\",\"3\"\n";
	assert_int_equal(ncu_read_text(&n, str_from(text), "a.csv", &e), 0);
	assert_int_equal(n.n, 2);
	expect(&n, 0, 0, "dram__bytes_read.sum", "byte", 2000);
	expect(&n, 0, 1, "sm__warps_active.avg.pct_of_peak_sustained_active", "%", 48.5);
	expect(&n, 1, 0, "dram__bytes_read.sum", "byte", 3e6);
	ncu_release(&n);
}

static void test_bad(void **state)
{
	static const struct { const char *text, *says; } is[] = {
		{"", "no header of Nsight Compute"}, {"a,b\n1,2\n", "no header of Nsight Compute"}, {RAW, "no kernel in it"},
		{RAW "\"0\",\"7\",\"f\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"1\",\"85,33\",\"1\"\n", "LC_ALL=C"},
		{RAW "\"0\",\"7\",\"f\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"1\",\"1.317.339,5\",\"1\"\n", "LC_ALL=C"},
		{RAW "\"0\",\"7\",\"f\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"1\",\"1\",\"1\"\n\"1\",\"8\",\"f\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"1\",\"1\",\"1\"\n", "several processes"},
		{RAW ROW "==PROF== Disconnected\n" RAW ROW, "a.csv: line 5: a second header"}, /* >> */
		{RAW ROW LONG, "line 4: a second header"}, {LONG LONG, "line 2: a second header"},
		{"\n\"ID\",\"Kernel Name\",\"dram__bytes.sum\n", "line 2: the header of Nsight Compute has a quote without an end"},
	};
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		struct ncu n;
		struct err e = {0};
		assert_int_equal(ncu_read_text(&n, str_from(is[i].text), "a.csv", &e), -1);
		assert_non_null(strstr(e.msg, is[i].says));
		ncu_release(&n);
	}
}

/* The program under ncu prints lines, too, and an editor may have put a byte order mark before the first one. */
static void test_lines_of_others(void **state)
{
	struct ncu n;
	struct err e = {0};
	assert_int_equal(ncu_read_text(&n, STR("\xef\xbb\xbf" RAW "ID,loss\n\"ID\",\"x\n" ROW "ID,1,2,3,4,5,6,7,8,9,10,11\n"), "a.csv", &e), 0);
	assert_int_equal(n.n, 1);
	expect(&n, 0, 0, "dram__bytes.sum", "byte", 2e6);
	ncu_release(&n);
}

static int read_with_columns(unsigned columns, struct err *e)
{
	struct ncu n;
	struct buf b = {0};
	buf_cstr(&b, "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\"");
	for (unsigned i = 4; i < columns; i++)
		buf_char(&b, ',');
	buf_cstr(&b, "\n0,f,\"(1, 1, 1)\",\"(1, 1, 1)\"");
	for (unsigned i = 4; i < columns; i++)
		buf_char(&b, ',');
	const int rc = ncu_read_text(&n, buf_view(&b), "a.csv", e);
	ncu_release(&n);
	buf_release(&b);
	return rc;
}

static void test_columns(void **state)
{
	struct err e = {0};
	assert_int_equal(read_with_columns(1 << 16, &e), 0);
	assert_int_equal(read_with_columns((1 << 16) + 1, &e), -1);
	assert_non_null(strstr(e.msg, "line 1: the header of Nsight Compute has more than 65,536 columns"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units), cmocka_unit_test(test_names), cmocka_unit_test(test_raw), cmocka_unit_test(test_long), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lines_of_others), cmocka_unit_test(test_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
