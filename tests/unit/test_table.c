/* Tables: cells, nulls, growth, sort, filter, limit, select; and the diagnostics list and UTF-8 beside them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/diag.h"
#include "base/table.h"
#include "base/utf8.h"
#include "query/curve.h"

enum { NAME, COUNT, SHARE, FLAG };

static void make(struct table *t)
{
	table_init(t, "demo", "Demo");
	TABLE_COLUMN(t, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "count", .title = "Count", .type = CELL_I64, .unit = UNIT_COUNT);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL);
	TABLE_COLUMN(t, .id = "flag", .title = "Flag", .type = CELL_BOOL);
}

static void add(struct table *t, const char *name, int64_t count)
{
	table_row(t);
	table_set_str(t, NAME, str_from(name));
	if (count >= 0)
		table_set_i64(t, COUNT, count);
}

static void assert_names(const struct table *t, const char *expected)
{
	struct buf got = {0};
	for (size_t r = 0; r < t->n_rows; r++) {
		if (r)
			buf_char(&got, ' ');
		buf_str(&got, table_str(t, r, (unsigned)table_find_column(t, STR("name"))));
	}
	buf_char(&got, 0);
	assert_string_equal(got.p, expected);
	buf_release(&got);
}

static void test_cells_and_nulls(void **state)
{
	struct table t;
	make(&t);
	add(&t, "a", -1);
	assert_true(table_is_null(&t, 0, COUNT));
	assert_true(table_is_null(&t, 0, FLAG));
	table_set_f64(&t, SHARE, NAN);
	assert_true(table_is_null(&t, 0, SHARE));
	table_set_f64(&t, SHARE, 12.5);
	table_set_bool(&t, FLAG, true);
	assert_true(table_f64(&t, 0, SHARE) == 12.5);
	assert_int_equal(table_i64(&t, 0, FLAG), 1);
	table_set_fmt(&t, NAME, "%s-%d", "x", 7);
	assert_true(str_eqc(table_str(&t, 0, NAME), "x-7"));
	table_set_i64(&t, SHARE, 3);
	assert_true(table_f64(&t, 0, SHARE) == 3.0);
	table_note(&t, "sum %d", 5);
	assert_true(str_eqc(t.notes[0], "sum 5"));
	table_release(&t);
}

/* A curve of a thousand points with one spike in each column: what is left has all, the ends, and the order. Two columns make a flat sum, one is almost empty. */
static void test_curve(void **state)
{
	for (size_t n = 3; n <= 2000; n += 27) {
		struct table t;
		unsigned spikes = 0;
		table_init(&t, "curve", "Curve");
		TABLE_COLUMN(&t, .id = "time_ns", .title = "Time", .type = CELL_I64);
		TABLE_COLUMN(&t, .id = "a_bytes", .title = "A", .type = CELL_I64);
		TABLE_COLUMN(&t, .id = "b_bytes", .title = "B", .type = CELL_I64);
		TABLE_COLUMN(&t, .id = "up_bytes", .title = "Up", .type = CELL_I64);
		TABLE_COLUMN(&t, .id = "down_bytes", .title = "Down", .type = CELL_I64);
		TABLE_COLUMN(&t, .id = "once_bytes", .title = "Once", .type = CELL_I64);
		for (int i = 0; i < 1000; i++) {
			table_row(&t);
			table_set_i64(&t, 0, i);
			table_set_i64(&t, 1, i == 501 ? INT64_MAX : 5000);
			table_set_i64(&t, 2, i == 502 ? 6000 : i);
			table_set_i64(&t, 3, i == 703);
			table_set_i64(&t, 4, i == 703 ? -1 : 0);
			if (i == 604)
				table_set_i64(&t, 5, 0);
		}
		curve_thin(&t, n);
		assert_int_equal(t.n_rows + t.hidden_rows, 1000);
		assert_true(n < 8 || n >= 1000 ? t.n_rows == 1000 && !t.n_notes : t.n_rows <= n && t.n_rows + 5 >= n && t.n_notes == 1);
		assert_int_equal(table_i64(&t, 0, 0), 0);
		assert_int_equal(table_i64(&t, t.n_rows - 1, 0), 999);
		for (size_t r = 0; r < t.n_rows; r++) {
			assert_true(!r || table_i64(&t, r, 0) > table_i64(&t, r - 1, 0));
			int64_t at = table_i64(&t, r, 0);
			spikes += at == 501 || at == 502 || at == 604 || at == 703;
		}
		assert_int_equal(spikes, 4);
		table_release(&t);
	}
}

static void test_many_rows_and_sections(void **state)
{
	struct table t;
	make(&t);
	for (int i = 0; i < 1000; i++)
		add(&t, "r", i);
	struct table *s = table_section(&t, "more", "More");
	struct table *last = table_section(&t, "last", "Last");
	assert_ptr_equal(t.next, s);
	assert_ptr_equal(s->next, last);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(table_i64(&t, (size_t)i, COUNT), i);
	table_release(&t);
}

static void test_sort_is_stable_and_natural(void **state)
{
	struct table t;
	struct err e;
	make(&t);
	add(&t, "rank10", 1);
	add(&t, "rank2", -1);
	add(&t, "b", 2);
	add(&t, "a", 2);
	add(&t, "rank1", 0);
	assert_int_equal(table_sort(&t, STR("count"), true, &e), 0);
	assert_names(&t, "b a rank10 rank1 rank2");
	assert_int_equal(table_sort(&t, STR("count"), false, &e), 0);
	assert_names(&t, "rank1 rank10 b a rank2"); /* nulls last both ways, b before a as before */
	assert_int_equal(table_sort(&t, STR("name"), false, &e), 0);
	assert_names(&t, "a b rank1 rank2 rank10");
	assert_int_equal(table_sort(&t, STR("nmae"), false, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, "no column 'nmae' in demo; there are: name, count, share_pct, flag");
	table_release(&t);
}

static void test_sort_large(void **state)
{
	struct table t;
	make(&t);
	uint32_t x = 1;
	for (int i = 0; i < 20001; i++) {
		x = x * 1664525u + 1013904223u;
		add(&t, "n", x >> 20);
		table_set_f64(&t, SHARE, i);
	}
	assert_int_equal(table_sort(&t, STR("count"), true, NULL), 0);
	for (size_t r = 1; r < t.n_rows; r++) {
		assert_true(table_i64(&t, r - 1, COUNT) >= table_i64(&t, r, COUNT));
		if (table_i64(&t, r - 1, COUNT) == table_i64(&t, r, COUNT))
			assert_true(table_f64(&t, r - 1, SHARE) < table_f64(&t, r, SHARE));
	}
	table_release(&t);
}

static void make_tree(struct table *t)
{
	static const struct { const char *name; int depth, count; } rows[] = {
		{"A", 0, 1}, {"A.x", 1, 5}, {"A.x.p", 2, 1}, {"A.y", 1, 9}, {"B", 0, 7}, {"B.z", 1, 3},
	};
	table_init(t, "tree", "Tree");
	TABLE_COLUMN(t, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "count", .title = "Count", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "depth", .title = "Depth", .type = CELL_I64, .flags = COLUMN_TREE);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		add(t, rows[i].name, rows[i].count);
		table_set_i64(t, 2, rows[i].depth);
	}
}

static void test_tree_stays_a_tree(void **state)
{
	struct table t;
	make_tree(&t);
	assert_int_equal(table_sort(&t, STR("count"), true, NULL), 0);
	assert_names(&t, "B B.z A A.y A.x A.x.p");
	table_filter(&t, STR("x.P"));
	assert_names(&t, "A A.x A.x.p");
	table_release(&t);
}

static void test_left_out_depth_makes_no_tree(void **state)
{
	struct table t;
	make_tree(&t);
	table_leave_out(&t, 2);
	assert_int_equal(table_sort(&t, STR("count"), true, NULL), 0);
	assert_names(&t, "A.y B A.x B.z A A.x.p");
	table_drop_left_out(&t);
	assert_int_equal(t.n_columns, 2);
	table_release(&t);
}

static void test_filter_limit_select(void **state)
{
	struct table t;
	struct err e;
	make(&t);
	add(&t, "aten::mm", 1);
	add(&t, "aten::add", 2);
	add(&t, "void gemm", 3);
	add(&t, "ATEN::relu", 4);
	table_filter(&t, STR("aten"));
	assert_names(&t, "aten::mm aten::add ATEN::relu");
	table_limit(&t, 2);
	assert_int_equal(t.hidden_rows, 1);
	table_limit(&t, 0);
	assert_int_equal(t.n_rows, 2);
	assert_int_equal(table_select(&t, STR("share_pct,nope"), &e), -1);
	assert_int_equal(t.n_columns, 4);
	assert_int_equal(table_select(&t, STR("share_pct,name,name"), &e), 0);
	assert_int_equal(t.n_columns, 2);
	assert_string_equal(t.data[0].col.id, "share_pct");
	assert_int_equal(t.data[0].col.flags, COLUMN_ASKED); /* asked for, so no detail any more */
	assert_names(&t, "aten::mm aten::add");
	unsigned late = TABLE_COLUMN(&t, "late", "Late", "", CELL_I64); /* null in the rows that there are */
	assert_true(table_is_null(&t, 0, late) && table_is_null(&t, 1, late));
	table_row(&t);
	table_set_i64(&t, late, 7);
	assert_int_equal(table_i64(&t, 2, late), 7);
	table_filter(&t, STR("nothing"));
	assert_int_equal(t.n_rows, 0);
	table_release(&t);
}

static void test_copy(void **state)
{
	(void)state;
	struct table t, copy;
	struct err e;
	make(&t);
	add(&t, "b", 1);
	add(&t, "a", -1);
	add(&t, "c", 2);
	table_note(&t, "a note");
	table_limit(&t, 2);
	make(table_section(&t, "more", "More"));
	add(t.next, "d", 4);
	table_copy(&copy, &t);
	assert_int_equal(table_sort(&copy, STR("name"), false, &e), 0);
	assert_int_equal(table_select(&copy, STR("name"), &e), 0);
	table_note(&copy, "another");
	table_filter(copy.next, STR("nothing"));
	assert_names(&copy, "a b");
	assert_int_equal(copy.held_rows, 3);
	assert_int_equal(copy.next->n_rows, 0);
	table_release(&copy);
	assert_names(&t, "b a");
	assert_true(table_is_null(&t, 1, COUNT));
	assert_int_equal(t.n_columns, 4);
	assert_int_equal(t.n_notes, 1);
	assert_int_equal(table_i64(t.next, 0, COUNT), 4);
	table_release(&t);
}

static void test_select_keeps_the_tree(void **state)
{
	struct table t;
	table_init(&t, "tree", "Tree");
	TABLE_COLUMN(&t, .id = "count", .title = "Count", .type = CELL_I64);
	TABLE_COLUMN(&t, .id = "depth", .title = "Depth", .type = CELL_I64, .flags = COLUMN_TREE);
	TABLE_COLUMN(&t, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(&t, .id = "other", .title = "Other", .type = CELL_STR);
	table_row(&t);
	table_set_i64(&t, 1, 7);
	assert_int_equal(table_select(&t, STR("count,name,other,name"), NULL), 0);
	assert_int_equal(t.n_columns, 4);
	assert_string_equal(t.data[1].col.id, "depth"); /* in front of what it indents */
	assert_int_equal(t.data[1].col.flags, COLUMN_TREE | COLUMN_INDENT);
	assert_string_equal(t.data[2].col.id, "name");
	assert_int_equal(table_i64(&t, 0, 1), 7);
	assert_int_equal(table_select(&t, STR("name,depth"), NULL), 0); /* asked for: where it was asked for */
	assert_int_equal(t.n_columns, 2);
	assert_string_equal(t.data[1].col.id, "depth");
	assert_int_equal(table_select(&t, STR("depth"), NULL), 0);
	assert_int_equal(t.n_columns, 1);
	table_release(&t);

	make_tree(&t); /* the depth stands behind the name: nothing is indented */
	assert_int_equal(table_select(&t, STR("name"), NULL), 0);
	assert_int_equal(t.n_columns, 1);
	table_release(&t);
}

static void test_diagnostics(void **state)
{
	struct diags d = {0};
	diag_add(&d, "bad-number", DIAG_REPAIR, 17, "number '%s'", "1e");
	diag_add(&d, "bad-number", DIAG_REPAIR, 99, "never formatted %d", 1);
	diag_add_n(&d, "lost", DIAG_LOSS, 5, -1, "lost some");
	diag_add_n(&d, "none", DIAG_LOSS, 0, -1, "none at all");
	assert_int_equal(d.n, 2);
	assert_int_equal(diag_count(&d, "bad-number"), 2);
	assert_int_equal(d.entry[0].first_offset, 17);
	assert_true(str_eqc(d.entry[0].message, "number '1e'"));
	assert_int_equal(diag_count(&d, "lost"), 5);
	assert_int_equal(diag_count(&d, "none"), 0);
	diag_add_n(&d, "lost", DIAG_LOSS, UINT64_MAX, -1, "lost more than can be counted");
	diag_add_n(&d, "lost", DIAG_LOSS, 1, -1, "lost one more");
	assert_true(diag_count(&d, "lost") == INT64_MAX);
	diags_release(&d);
}

static void assert_safe(struct str in, const char *expected)
{
	struct buf b = {0};
	utf8_put_safe(&b, in);
	buf_char(&b, 0);
	assert_string_equal(b.p, expected);
	buf_release(&b);
}

static void test_utf8(void **state)
{
	assert_safe(STR("plain caf\xc3\xa9 \xe4\xb8\xad"), "plain caf\xc3\xa9 \xe4\xb8\xad");
	assert_safe(STR("\x1b[31m\n\t\x7f"), "\\x1b[31m\\n\\t\\x7f");
	assert_safe(STR("\xc2\x9b" "31m"), "\\u009b31m");              /* C1 CSI */
	assert_safe(STR("a\xe2\x80\xae" "b"), "a\\u202eb");            /* right-to-left override */
	assert_safe(STR("\xc0\xaf\xed\xa0\x80\xff"), "\\xc0\\xaf\\xed\\xa0\\x80\\xff"); /* overlong, surrogate */
	assert_safe(STR("cut \xe4\xb8"), "cut \\xe4\\xb8");
	struct buf b = {0};
	utf8_put_valid(&b, STR("a\xff" "b\n"));
	buf_char(&b, 0);
	assert_string_equal(b.p, "a\xef\xbf\xbd" "b\n");
	buf_release(&b);
	assert_int_equal(utf8_width(0x4e2d), 2);
	assert_int_equal(utf8_width(0x301), 0);
}

enum { DRAINED = 5000 };

/* The rows are there, each once and in order, with their texts and what they left empty. */
static void take_rows(void *context, const struct table *rows)
{
	int64_t *n = context;
	for (size_t r = 0; r < rows->n_rows; r++, ++*n) {
		char name[16];
		snprintf(name, sizeof name, "row %d", (int)*n);
		assert_true(str_eqc(table_str(rows, r, NAME), name));
		assert_int_equal(table_is_null(rows, r, COUNT), *n % 3 == 0);
		assert_int_equal(table_i64(rows, r, COUNT), *n % 3 ? *n : 0);
	}
}

static void test_drain(void **state)
{
	struct table t, copy;
	int64_t taken = 0;
	struct table_drain drain = {.put = take_rows, .context = &taken};
	make(&t);
	t.drain = &drain;
	table_note(&t, "said %s", "before");
	for (int i = 0; i < DRAINED; i++) {
		table_row(&t);
		table_set_fmt(&t, NAME, "row %d", i);
		if (i % 3)
			table_set_i64(&t, COUNT, i);
	}
	assert_true(taken > 0 && taken + (int64_t)t.n_rows == DRAINED && t.cap_rows < DRAINED / 2);
	table_leave_out(&t, FLAG);
	table_copy(&copy, &t);
	assert_null(copy.drain);
	table_drop_left_out(&copy);
	assert_int_equal(copy.n_columns, 3);
	table_release(&copy);
	table_end_drain(&t);
	take_rows(&taken, &t);
	assert_int_equal(taken, DRAINED);
	assert_true(str_eqc(t.notes[0], "said before"));
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_and_nulls),
		cmocka_unit_test(test_curve),
		cmocka_unit_test(test_many_rows_and_sections),
		cmocka_unit_test(test_sort_is_stable_and_natural),
		cmocka_unit_test(test_sort_large),
		cmocka_unit_test(test_tree_stays_a_tree),
		cmocka_unit_test(test_left_out_depth_makes_no_tree),
		cmocka_unit_test(test_filter_limit_select),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_select_keeps_the_tree),
		cmocka_unit_test(test_diagnostics),
		cmocka_unit_test(test_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
