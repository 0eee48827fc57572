/* Numbers as torch prints them: the expected texts are Python's of the same doubles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/tree/torch_events.h"
#include "base/table.h"
#include "render/layout.h"
#include "render/render.h"
#include "render/torch_format.h"

#define CHECK(put, want)                            \
	do {                                        \
		struct buf b = {0};                 \
		put;                                \
		buf_char(&b, 0);                    \
		assert_string_equal(b.p, want);     \
		buf_release(&b);                    \
	} while (0)

static void test_time(void **state)
{
	CHECK(torch_text_time(&b, 0, NULL), "0.000us");
	CHECK(torch_text_time(&b, 999.9995, NULL), "1000.000us"); /* the unit is chosen before rounding */
	CHECK(torch_text_time(&b, 999.9994, NULL), "999.999us");
	CHECK(torch_text_time(&b, 1000, NULL), "1.000ms");
	CHECK(torch_text_time(&b, 999999.9, NULL), "1000.000ms");
	CHECK(torch_text_time(&b, 1e6, NULL), "1.000s");
	CHECK(torch_text_time(&b, 3.6e9, NULL), "3600.000s");
	CHECK(torch_text_time(&b, -5e6, NULL), "-5000000.000us"); /* negative times have no larger unit */
	CHECK(torch_text_time(&b, 1234.5, NULL), "1.234ms");      /* 1.2345 is a little less as a double */
	CHECK(torch_text_time(&b, 1.5, "s"), "0.000s");
	CHECK(torch_text_time(&b, 1500, "ms"), "1.500ms");
	CHECK(torch_text_time(&b, 1e6, "us"), "1000000.000us");
}

static void test_share(void **state)
{
	CHECK(torch_text_share(&b, 0), "0.00%");
	CHECK(torch_text_share(&b, 100), "100.00%");
	CHECK(torch_text_share(&b, -0.125), "-0.12%"); /* half way, to even */
	CHECK(torch_text_share(&b, 33.3333), "33.33%");
}

static void test_memory(void **state)
{
	CHECK(torch_text_memory(&b, 0, torch_memory_units), "0 B");
	CHECK(torch_text_memory(&b, 1023, torch_memory_units), "1023 B");
	CHECK(torch_text_memory(&b, -1023, torch_memory_units_old), "-1023 b");
	CHECK(torch_text_memory(&b, 1024, torch_memory_units), "1.00 KB");
	CHECK(torch_text_memory(&b, -1024, torch_memory_units_old), "-1.00 Kb");
	CHECK(torch_text_memory(&b, (1 << 20) - 1, torch_memory_units), "1024.00 KB");
	CHECK(torch_text_memory(&b, 1 << 20, torch_memory_units_old), "1.00 Mb");
	CHECK(torch_text_memory(&b, (int64_t)3 << 29, torch_memory_units), "1.50 GB");
	CHECK(torch_text_memory(&b, (int64_t)1 << 50, torch_memory_units), "1048576.00 GB");
	CHECK(torch_text_memory(&b, INT64_MIN, torch_memory_units_old), "-8589934592.00 Gb");
}

static void test_flops(void **state)
{
	assert_string_equal(torch_flops_unit_of(1).name, "FLOPs");
	assert_string_equal(torch_flops_unit_of(999).name, "FLOPs");
	assert_string_equal(torch_flops_unit_of(1000).name, "KFLOPs");
	assert_string_equal(torch_flops_unit_of(1000000000000000000).name, "PFLOPs");
	assert_string_equal(torch_flops_unit_of(INT64_MAX).name, "PFLOPs");
	CHECK(torch_text_flops(&b, 0, 1), "--");
	CHECK(torch_text_flops(&b, -1, 1), "--");
	CHECK(torch_text_flops(&b, 128, 1), " 128.000");
	CHECK(torch_text_flops(&b, 61440, torch_flops_unit_of(30720).scale), "  61.440");
	CHECK(torch_text_flops(&b, 600047616, torch_flops_unit_of(30720).scale), "600047.616");
}

static void make(struct table *t, const char *layout)
{
	table_init(t, "demo", "Demo");
	t->layout = layout;
	TABLE_COLUMN(t, .id = "key", .title = "Name", .help = "", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "total_cpu_percent", .title = "CPU total %", .help = "", .type = CELL_F64, .unit = UNIT_PERCENT);
	TABLE_COLUMN(t, .id = "stack", .title = "Source Location", .help = "", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_STACK);
	TABLE_COLUMN(t, .id = "flops", .title = "Total FLOPs", .help = "", .type = CELL_I64, .unit = UNIT_FLOPS);
	TABLE_COLUMN(t, .id = "is_async", .title = "Async", .help = "", .type = CELL_BOOL, .flags = COLUMN_DETAIL);
}

static void add(struct table *t, const char *name, double pct, const char *stack, int64_t flops, bool async)
{
	table_row(t);
	table_set_str(t, 0, str_from(name));
	table_set_f64(t, 1, pct);
	table_set_str(t, 2, str_from(stack));
	table_set_i64(t, 3, flops);
	table_set_bool(t, 4, async);
}

static struct str text(const struct table *t, struct buf *out)
{
	struct err e;
	buf_clear(out);
	assert_int_equal(renderer_find(STR("text"))->render(t, &(struct render_options){0}, out, &e), 0);
	buf_char(out, 0);
	return (struct str){out->p, out->n - 1};
}

/* A stack of seven frames: five of them in torch 1, all in torch 2. The FLOPs stand below the heading of the stack. */
static void test_stacks(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t, "torch-1.13");
	add(&t, "op", (double)NAN, "f1;f2;f3;f4;f5;f6;f7", 2000, false); /* null: the base is 0 */
	add(&t, "as", 7, "", 0, true);
	assert_string_equal(text(&t, &out).p,
	                    "------  ------------  ------  ------------  \n"
	                    "  Name   CPU total %  Source Location  Total KFLOPs  \n"
	                    "------  ------------  ------  ------------  \n"
	                    "    op           NaN     2.000            f1  \n"
	                    "                                        f2  \n"
	                    "                                        f3  \n"
	                    "                                        f4  \n"
	                    "                                        f5  \n"
	                    "                                            \n"
	                    "    as             0  --                    \n"
	                    "                                            \n"
	                    "------  ------------  ------  ------------  \n");
	t.layout = "torch-2.6";
	assert_true(str_has(text(&t, &out), STR("  f7  \n")));
	buf_release(&out);
	table_release(&t);
}

/* Widths are those of all rows, also of those that are not shown. */
static void test_widths(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t, "torch-2.14");
	for (int i = 0; i < 2; i++)
		add(&t, i ? "a name of more than fifty-five characters, which is cut behind" : "x", 1, i ? "" : "\xc3\xa9\xc3\xa9", 0, false);
	table_limit(&t, 1);
	assert_string_equal(text(&t, &out).p,
	                    "-------------------------------------------------------  ------------  ------  \n"
	                    "                                                   Name   CPU total %  Source Location  \n"
	                    "-------------------------------------------------------  ------------  ------  \n"
	                    "                                                      x         1.00%  \xc3\xa9\xc3\xa9      \n"
	                    "                                                                               \n"
	                    "-------------------------------------------------------  ------------  ------  \n");
	table_release(&t);
	make(&t, "torch-2.14");
	assert_string_equal(text(&t, &out).p, ""); /* as torch prints an empty list */
	buf_release(&out);
	table_release(&t);
}

/* Each version of torch has a layout; what none has is shown as any table is. */
static void test_versions(void **state)
{
	struct table t;
	make(&t, "torch-2.14");
	for (const char *const *compat = torch_versions; *compat; compat++) {
		t.layout = *compat;
		assert_non_null(layout_of(&t));
	}
	assert_string_equal(torch_versions[0], "torch-1.13");
	t.layout = "torch-9.9";
	assert_null(layout_of(&t));
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),  cmocka_unit_test(test_share),  cmocka_unit_test(test_memory),
		cmocka_unit_test(test_flops), cmocka_unit_test(test_stacks), cmocka_unit_test(test_widths),
		cmocka_unit_test(test_versions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
