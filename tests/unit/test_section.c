/* Declared columns: which a table starts with, what is said of those that are not there, and what report_run adds to them. */
#include "base/buf.h"
#include "base/mem.h"
#include "query/report.h"
#include "test.h"

enum { BY_NAME, BY_OP, BY_EACH };
enum { SUM_NAME, SUM_OP, SUM_CALLS, SUM_BYTES, SUMS };

static const struct section_column sums[SUMS] = {
	[SUM_NAME] = {COLUMN(TEXT, "name", "Kernel", NULL, .flags = COLUMN_KERNEL)},
	[SUM_OP] = {COLUMN(TEXT, "operator", "Operator", NULL), .not_by = BY(BY_NAME)},
	[SUM_CALLS] = {COLUMN(NUMBER, "calls", "Calls", NULL)},
	[SUM_BYTES] = {COLUMN(NUMBER, "bytes", "Bytes", NULL), .when = WHEN_SHAPES | WHEN_RECORDED},
};
static const struct section sums_section = {.columns = sums, .n = SUMS, .by = BY(BY_NAME) | BY(BY_OP)};

static const struct section_column each[] = {
	{COLUMN(NUMBER, "start_ns", "Start", NULL)},
	{COLUMN(TEXT, "operator", "Operator", NULL)},
};
static const struct section each_section = {.columns = each, .n = 2, .by = BY(BY_EACH)};

static const struct section_column step[] = {{COLUMN(NUMBER, "calls", "Calls", NULL)}};
static const struct section step_section = {.name = "steps", .title = "Steps", .columns = step, .n = 1};

static const struct report_variant rows[] = {{.group_by = "name", .by = BY_NAME}, {.group_by = "op", .by = BY_OP}, {.group_by = "each", .by = BY_EACH}, {0}};

/* outside.def has "calls" and "total_ns" of the report of this name. */
static const struct report report = {
	.name = "kernels",
	.variants = rows,
	.sections = (const struct section *const[]){&sums_section, &each_section, &step_section, NULL},
};

static void assert_columns(const struct table *t, const char *want)
{
	struct buf b = {0};
	for (unsigned c = 0; c < t->n_columns; c++)
		buf_printf(&b, "%s%s", c ? " " : "", t->data[c].col.id);
	assert_str_equal(buf_view(&b), want);
	buf_release(&b);
}

static void test_start(void **state)
{
	struct report_args args = {.variant = &rows[BY_NAME]};
	struct table t;
	table_init(&t, "sums", "");
	section_start(&sums_section, &args, WHEN_SHAPES | WHEN_RECORDED, &t);
	section_leave_out(&sums_section, SUM_BYTES, &t);
	table_row(&t);
	table_set_str(&t, SUM_OP, STR("dropped"));
	table_set_i64(&t, SUM_CALLS, 3);
	args.variant = &rows[BY_OP];
	section_start(&sums_section, &args, WHEN_SHAPES, table_section(&t, "without", ""));
	struct table *added = section_add(&step_section, &args, 0, &t);
	table_drop_left_out(&t);
	assert_columns(&t, "name calls");
	assert_int_equal(table_i64(&t, 0, 1), 3);
	assert_columns(t.next, "name operator calls");
	assert_string_equal(added->name, "steps");
	assert_columns(added, "calls");
	table_release(&t);
}

/* Each column once, by section; behind the section its short names, and last what lies outside the steps. */
static void test_entries(void **state)
{
	static const struct {
		const char *section, *id, *when;
	} want[] = {
		{NULL, "name", "--group-by=name, op"}, {NULL, "operator", "--group-by=op, each"}, {NULL, "calls", "--group-by=name, op"},
		{NULL, "bytes", "--group-by=name, op; recorded shapes; where recorded"}, {NULL, "short_name", "--group-by=name, op"},
		{NULL, "start_ns", "--group-by=each"}, {"steps", "calls", ""}, {"outside", "calls", "work outside the steps"},
	};
	unsigned n;
	struct section_entry *list = section_entries(&report, &n);
	assert_int_equal(n, sizeof want / sizeof want[0]);
	for (unsigned i = 0; i < n; i++) {
		struct buf when = {0};
		assert_string_equal(list[i].c.column.id, want[i].id);
		assert_int_equal(!list[i].section, !want[i].section);
		if (want[i].section)
			assert_string_equal(list[i].section, want[i].section);
		section_put_when(&report, &list[i], &when);
		assert_str_equal(buf_view(&when), want[i].when);
		buf_release(&when);
	}
	mem_free(list);
}

static void test_find(void **state)
{
	struct section_entry e;
	assert_true(section_find(&report, NULL, STR("start_ns"), &e));
	assert_true(section_find(&report, NULL, STR("short_name"), &e));
	assert_string_equal(e.c.column.short_of, "name");
	assert_true(section_find(&report, "steps", STR("calls"), &e));
	assert_true(section_find(&report, "outside", STR("calls"), &e));
	assert_false(section_find(&report, "outside", STR("bytes"), &e));
	assert_false(section_find(&report, "steps", STR("name"), &e));
	assert_false(section_find(&(struct report){.name = "kernels"}, NULL, STR("name"), &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_start), cmocka_unit_test(test_entries), cmocka_unit_test(test_find)};
	return RUN_TESTS(tests);
}
