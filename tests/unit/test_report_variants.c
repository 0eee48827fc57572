/* The rows of reports: each pair of --compat and --group-by chooses one row, and what no row has is refused with what there is. */
#include "query/predecessor.h"
#include "test.h"

static const struct report *report_named(const char *name)
{
	const struct report *r = report_find(str_from(name));
	assert_non_null(r);
	return r;
}

static const struct report_variant *row_of(const struct report *r, const char *compat, const char *group_by)
{
	return report_variant_of(r, &(struct report_args){.compat = compat, .group_by = group_by}, NULL);
}

static void assert_refused(const char *name, const char *compat, const char *group_by, const char *why)
{
	struct err e;
	assert_null(report_variant_of(report_named(name), &(struct report_args){.compat = compat, .group_by = group_by}, &e));
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, why);
}

static bool is_last(const struct report_variant *v)
{
	return !v->compat && !v->group_by && !v->parts && !v->run && !v->report;
}

static bool same_word(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A row that an earlier one hides could never be asked for. */
static void test_rows_are_told_apart(void **state)
{
	for (const struct report *const *r = report_registry; *r; r++)
		for (const struct report_variant *a = (*r)->variants; a && !is_last(a); a++) {
			assert_true(a->run || (*r)->run || (*r)->run_job);
			for (const struct report_variant *b = (*r)->variants; b < a; b++)
				assert_false(same_word(a->compat, b->compat) && same_word(a->group_by, b->group_by) && !a->parts == !b->parts);
		}
}

static void test_each_row_is_found(void **state)
{
	for (const struct report *const *r = report_registry; *r; r++)
		for (const struct report_variant *v = (*r)->variants; v && !is_last(v); v++)
			assert_ptr_equal(row_of(*r, v->compat, v->group_by ? v->group_by : v->parts ? v->parts[0] : NULL), v);
}

static void test_default(void **state)
{
	assert_int_equal(row_of(report_named("kernels"), NULL, NULL)->by, row_of(report_named("kernels"), NULL, "name")->by);
	assert_non_null(row_of(report_named("gpu-samples"), NULL, NULL)); /* a report without rows has one */
	assert_non_null(row_of(report_named("devices"), NULL, NULL));
}

static void test_parts(void **state)
{
	const struct report *r = report_named("key-averages");
	assert_true(report_combines(r));
	assert_non_null(row_of(r, NULL, "name,stack:3")->parts);
	assert_string_equal(row_of(r, NULL, "event")->group_by, "event"); /* its own row goes before the list that names it */
	assert_non_null(row_of(r, NULL, "event,name")->parts);
	assert_true(report_is_per_event(r, "event"));
	assert_false(report_is_per_event(r, "name"));
	assert_string_equal(report_grouping(r, 0), "name");
	assert_string_equal(report_grouping(r, 7), "event");
	assert_null(report_grouping(r, 8));
}

static void test_predecessors(void **state)
{
	for (const struct report *const *r = report_registry; *r; r++)
		for (unsigned i = 0; report_compat(*r, i); i++)
			for (unsigned k = 0; k < i; k++)
				assert_string_not_equal(report_compat(*r, k), report_compat(*r, i));
	assert_null(report_compat(report_named("waits"), 0));
}

/* The refusal names those that there are, whichever they are. */
static void test_unknown_predecessor(void **state)
{
	for (const struct report *const *r = report_registry; *r; r++) {
		struct buf why = {0};
		if (report_compat(*r, 0))
			buf_printf(&why, "--compat=nonsense: report %s has: ", (*r)->name);
		else
			buf_printf(&why, "report %s has no --compat", (*r)->name);
		for (unsigned i = 0; report_compat(*r, i); i++)
			buf_printf(&why, "%s%s", i ? ", " : "", report_compat(*r, i));
		buf_char(&why, 0);
		assert_refused((*r)->name, "nonsense", NULL, why.p);
		buf_release(&why);
	}
}

static void test_refused(void **state)
{
	assert_refused("kernels", NULL, "shape", "--group-by=shape: report kernels has: name, op, launch, instance");
	assert_refused("overview", NULL, "name", "report overview has no --group-by");
	assert_refused("key-averages", NULL, "name,name", "--group-by=name,name: 'name': report key-averages combines, each once: name, shape, stack:N, overload, module, "
	               "thread, cycle, event");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_told_apart), cmocka_unit_test(test_each_row_is_found), cmocka_unit_test(test_default),
		cmocka_unit_test(test_parts), cmocka_unit_test(test_predecessors), cmocka_unit_test(test_unknown_predecessor), cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
