/* The rows that reports have by torch's rules. */
#include "query/report.h"
#include "test.h"

static void test_nearest_version(void **state)
{
	struct err e;
	assert_null(report_variant_of(report_find(STR("key-averages")), &(struct report_args){.compat = "torch-2.7"}, &e));
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, "--compat=torch-2.7: report key-averages has: torch-1.13, torch-2.6, torch-2.11, torch-2.14; the nearest is torch-2.6");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_nearest_version)};
	return RUN_TESTS(tests);
}
