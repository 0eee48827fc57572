/* Renderers: exact CSV and JSON, text that fits and is harmless, HTML that is escaped. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "render/number.h"
#include "render/render.h"
#include "render/text_alike.h"
#include "render/text_cut.h"
#include "render/text_layout.h"

static struct str render(const struct table *t, const char *format, const struct render_options *o, struct buf *out)
{
	struct err e;
	const struct renderer *r = renderer_find(str_from(format));
	assert_non_null(r);
	buf_clear(out);
	assert_int_equal(r->render(t, o, out, &e), 0);
	buf_char(out, 0);
	return (struct str){out->p, out->n - 1};
}

static void make(struct table *t)
{
	table_init(t, "demo", "Demo table");
	TABLE_COLUMN(t, .id = "name", .title = "Name", .help = "the \"name\"", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "total_ns", .title = "Total time", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .type = CELL_F64, .unit = UNIT_PERCENT);
	TABLE_COLUMN(t, .id = "tc", .title = "TC", .type = CELL_BOOL);
	TABLE_COLUMN(t, .id = "stack", .title = "Call stack", .type = CELL_STR, .flags = COLUMN_WIDE);
	TABLE_COLUMN(t, .id = "extra", .title = "Extra", .type = CELL_I64, .flags = COLUMN_DETAIL);
}

static void add(struct table *t, struct str name, int64_t ns, double share, struct str stack)
{
	table_row(t);
	table_set_str(t, 0, name);
	table_set_i64(t, 1, ns);
	table_set_f64(t, 2, share);
	table_set_bool(t, 3, ns > 0);
	table_set_str(t, 4, stack);
}

static void test_csv_exact(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t);
	add(&t, STR("say \"hi\", you"), 1234567, 0.1, STR("a\nb"));
	add(&t, STR(""), INT64_MIN, 1.0 / 3, STR("plain"));
	table_row(&t);
	table_set_i64(&t, 5, 7);
	assert_string_equal(render(&t, "csv", &(struct render_options){0}, &out).p,
	                    "name,total_ns,share_pct,tc,stack,extra\n"
	                    "\"say \"\"hi\"\", you\",1234567,0.1,true,\"a\nb\",\n"
	                    "\"\",-9223372036854775808,0.3333333333333333,false,plain,\n"
	                    ",,,,,7\n");
	struct table *s = table_section(&t, "more", "More");
	TABLE_COLUMN(s, .id = "x", .title = "X", .type = CELL_I64);
	assert_string_equal(render(&t, "csv", &(struct render_options){.section = "more"}, &out).p, "x\n");
	struct err e;
	assert_int_equal(renderer_find(STR("csv"))->render(&t, &(struct render_options){.section = "no"}, &out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	buf_release(&out);
	table_release(&t);
}

/* What a table of one column of text looks like, `text` NULL being unknown. */
static void csv_is(const char *text, size_t n, const char *line)
{
	struct table t;
	struct buf out = {0}, wanted = {0};
	table_init(&t, "t", "T");
	TABLE_COLUMN(&t, .id = "x", .title = "X", .type = CELL_STR);
	table_row(&t);
	if (text)
		table_set_str(&t, 0, (struct str){text, n});
	buf_printf(&wanted, "x\n%s\n%c", line, 0);
	assert_string_equal(render(&t, "csv", &(struct render_options){0}, &out).p, wanted.p);
	buf_release(&out);
	buf_release(&wanted);
	table_release(&t);
}

/* Texts of a hostile trace obey neither a terminal nor a spreadsheet, and no row is lost. */
static void test_csv_hostile(void **state)
{
	static const char *const rows[][2] = {
		{"=1+2", "'=1+2"},
		{" =1", "' =1"},
		{"\n=1", "\"'\n=1\""},
		{" a =1", "\" a =1\""},
		{"+x", "'+x"},
		{"@SUM(A1)", "'@SUM(A1)"},
		{"-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"},
		{"\t=1", "'\t=1"},
		{"=1,\"a\"", "\"'=1,\"\"a\"\"\""},
		{"-1.5e3", "-1.5e3"},
		{"+7", "+7"},
		{"-", "-"},
		{"a=b", "a=b"},
		{"\x1b[2Ja", "\\x1b[2Ja"},
		{"a\x7f", "a\\x7f"},
		{"a\xc2\x85", "a\\u0085"},
		{"a\tb", "a\tb"},
		{"a\rb", "\"a\rb\""},
		{"\xff", "\xef\xbf\xbd"},
		{"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
		{"", "\"\""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		csv_is(rows[i][0], strlen(rows[i][0]), rows[i][1]);
	csv_is("a\0b", 3, "a\\x00b");
	csv_is(NULL, 0, "\"\"");
}

static void test_json_exact(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "demo", "Demo");
	TABLE_COLUMN(&t, .id = "name", .title = "Name", .help = "the \"name\"", .type = CELL_STR);
	TABLE_COLUMN(&t, .id = "n_ns", .title = "N", .type = CELL_I64, .unit = UNIT_NS);
	table_row(&t);
	table_set_str(&t, 0, STR("a\\\x01\x7f\xff\xe2\x80\xa8\n"));
	table_row(&t);
	table_set_i64(&t, 1, INT64_MAX);
	table_note(&t, "note");
	struct table *s = table_section(&t, "s1", "S \"1\"");
	TABLE_COLUMN(s, .id = "x", .title = "X", .type = CELL_F64);
	table_row(s);
	table_set_f64(s, 0, 0.1);
	assert_string_equal(
		render(&t, "json", &(struct render_options){.input = "in"}, &out).p,
		"{\"report\":\"demo\",\"version\":1,\"input\":\"in\",\n"
		"\"columns\":[\n"
		"{\"id\":\"name\",\"title\":\"Name\",\"type\":\"string\",\"unit\":\"\",\"help\":\"the \\\"name\\\"\"},\n"
		"{\"id\":\"n_ns\",\"title\":\"N\",\"type\":\"integer\",\"unit\":\"ns\",\"help\":\"\"}],\n"
		"\"rows\":[\n"
		"[\"a\\\\\\u0001\\u007f\xef\xbf\xbd\\u2028\\n\",null],\n"
		"[null,9223372036854775807]],\n"
		"\"notes\":[\"note\"],\n"
		"\"sections\":[\n"
		"{\"name\":\"s1\",\"title\":\"S \\\"1\\\"\",\n"
		"\"columns\":[\n"
		"{\"id\":\"x\",\"title\":\"X\",\"type\":\"number\",\"unit\":\"\",\"help\":\"\"}],\n"
		"\"rows\":[\n"
		"[0.1]],\n"
		"\"notes\":[]}]}\n");
	buf_release(&out);
	table_release(&t);
}

static void test_text_plain(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t);
	add(&t, STR("aten::mm"), 1234567, 45.678, STR("a.py(1): f"));
	add(&t, STR("x"), 999, 5, STR("\x1b]0;evil\x07\n"));
	table_row(&t);
	t.hidden_rows = 1234;
	table_note(&t, "kernels 10 ns = attributed 7 + unattributed 3");
	assert_string_equal(render(&t, "text", &(struct render_options){0}, &out).p,
	                    "Demo table\n"
	                    "Name      Total time    Share  TC   Call stack\n"
	                    "────────  ──────────  ───────  ───  ─────────────────\n"
	                    "aten::mm    1.235 ms  45.68 %  yes  a.py(1): f\n"
	                    "x             999 ns   5.00 %  yes  \\x1b]0;evil\\x07\\n\n"
	                    "-                  -        -  -    -\n"
	                    "... and 1,234 more rows (--limit=0 shows all)\n"
	                    "\n"
	                    "kernels 10 ns = attributed 7 + unattributed 3\n");
	buf_release(&out);
	table_release(&t);
}

/* Every line fits, every byte is printable or a newline, and no character is cut in two. */
static void assert_fits(struct str text, size_t width)
{
	struct str line;
	while (str_split(&text, '\n', &line)) {
		assert_true(text_width(line) <= width);
		for (size_t at = 0; at < line.n;) {
			uint32_t code;
			at += utf8_next(line, at, &code);
			assert_false(utf8_is_unsafe(code));
		}
	}
}

static void test_text_fits_any_width(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t);
	add(&t, STR("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>(Params)"),
	    1234567890123, 100, STR("\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87 x;y;z"));
	add(&t, STR("caf\xc3\xa9 \xff\x9b\x1b[2J"), -5, 0, STR("a.py(1): f;b.py(22): g;c.py(333): h;d.py(4444): i"));
	table_note(&t, "a note that is long enough to be wrapped at any of these widths \x1b[31m and hostile");
	for (unsigned width = 30; width < 200; width++)
		assert_fits(render(&t, "text", &(struct render_options){.width = width}, &out), width);
	assert_true(str_has(render(&t, "text", &(struct render_options){.width = 60}, &out), STR("\xe2\x80\xa6")));
	assert_true(str_has(render(&t, "text", &(struct render_options){.width = 30}, &out), STR("no room for: ")));
	buf_release(&out);
	table_release(&t);
}

static void test_text_tree(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "tree", "Tree");
	TABLE_COLUMN(&t, .id = "depth", .title = "Depth", .type = CELL_I64, .flags = COLUMN_TREE);
	TABLE_COLUMN(&t, .id = "module", .title = "Module", .type = CELL_STR);
	for (int i = 0; i < 3; i++) {
		table_row(&t);
		table_set_i64(&t, 0, i);
		table_set_str(&t, 1, STR("m"));
	}
	assert_string_equal(render(&t, "text", &(struct render_options){0}, &out).p,
	                    "Tree\nModule\n──────\nm\n  m\n    m\n");
	assert_int_equal(table_select(&t, STR("module"), NULL), 0);
	assert_string_equal(render(&t, "text", &(struct render_options){0}, &out).p,
	                    "Tree\nModule\n──────\nm\n  m\n    m\n");
	assert_string_equal(render(&t, "csv", &(struct render_options){0}, &out).p, "module\nm\nm\nm\n");
	struct str json = render(&t, "json", &(struct render_options){0}, &out);
	assert_true(str_has(json, STR("[\"m\"],\n[\"m\"]")) && !str_has(json, STR("depth")));
	buf_release(&out);
	table_release(&t);
}

static void assert_cut(void (*cut)(struct buf *, struct str, size_t), const char *text, size_t width, const char *expected)
{
	struct buf out = {0};
	cut(&out, str_from(text), width);
	assert_int_equal(text_width(buf_view(&out)), width);
	buf_char(&out, 0);
	assert_string_equal(out.p, expected);
	buf_release(&out);
}

static void test_cut_in_the_middle(void **state)
{
	assert_cut(text_put_cut, "gemm_f16_128x64_nn", 18, "gemm_f16_128x64_nn");
	assert_cut(text_put_cut, "gemm_f16_128x64_nn", 20, "gemm_f16_128x64_nn  ");
	assert_cut(text_put_cut, "gemm_f16_128x64_nn", 11, "gemm_f…4_nn");
	assert_cut(text_put_cut, "gemm_f16_128x64_nt", 11, "gemm_f…4_nt");
	assert_cut(text_put_cut, "gemm", 1, "…");
	assert_cut(text_put_cut, "      gemm_f16_128x64_nn", 17, "      gemm_f…4_nn"); /* deep in a tree */
	assert_cut(text_put_cut, "              abcdefgh", 8, "       …");
	assert_cut(text_put_cut, "中文中文中文中文", 8, "中文…文 "); /* two cells each: none is halved */
	assert_cut(text_put_cut, "abcdefe\xcc\x81", 4, "a…fe\xcc\x81"); /* a mark stays with its letter */
	assert_cut(text_put_cut, "abcdefe\xcc\x81", 2, "…e\xcc\x81");
}

static void test_cut_stack(void **state)
{
	static const char stack[] = "torch/nn/functional.py(12): linear;model.py(3): forward;train.py(9): main";
	assert_cut(text_put_cut_stack, stack, 30, "torch/nn/functional.py(12)…ain");
	assert_cut(text_put_cut_stack, stack, 27, "torch/nn/functional.py(12)…");
	assert_cut(text_put_cut_stack, stack, 12, "…onal.py(12)");
	assert_cut(text_put_cut_stack, stack, 60, "torch/nn/functional.py(12): linear;…orward;train.py(9): main");
	assert_cut(text_put_cut_stack, "<built-in method run_backward of Engine>", 11, "<built…ine>");
}

static void test_stack_paths_are_short(void **state)
{
	static const char *const stacks[][2] = {
		{"/home/u/x/site-packages/torch/nn/functional.py(12): f", "torch/nn/functional.py(12): f"},
		{"../opt/conda/lib/python3.8/site-packages/torch/a.py(1): f;/home/u/dist-packages/b.py(2): g", "torch/a.py(1): f;b.py(2): g"},
		{"/home/u/project/train.py(22): <module>", "project/train.py(22): <module>"},
		{"/train.py(22): <module>", "/train.py(22): <module>"},
		{"C:\\u\\project\\train.py(22): main", "project\\train.py(22): main"},
		{"torch/nn/modules/linear.py(96): forward", "torch/nn/modules/linear.py(96): forward"},
		{"<built-in function linear>;nn.Module: Linear_0", "<built-in function linear>;nn.Module: Linear_0"},
		{"/a/b (x)/c.py(7): f", "b (x)/c.py(7): f"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
		struct buf out = {0};
		text_put_short_stack(&out, str_from(stacks[i][0]));
		buf_char(&out, 0);
		assert_string_equal(out.p, stacks[i][1]);
		buf_release(&out);
	}
}

/* Only text is for eyes: CSV has the whole path. */
static void test_stack_column(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "s", "S");
	TABLE_COLUMN(&t, .id = "call_stack", .title = "Call stack", .type = CELL_STR, .flags = COLUMN_STACK);
	table_row(&t);
	table_set_str(&t, 0, STR("/home/u/x/site-packages/torch/nn/functional.py(12): f;/home/u/proj/train.py(5): main;/home/u/proj/run.py(7): go"));
	assert_true(str_has(render(&t, "text", &(struct render_options){0}, &out),
	                    STR("\ntorch/nn/functional.py(12): f;proj/train.py(5): main;proj/run.py(7): go\n")));
	assert_true(str_has(render(&t, "text", &(struct render_options){.width = 40}, &out),
	                    STR("\ntorch/nn/functional.py(12)…run.py(7): go\n")));
	assert_true(str_has(render(&t, "csv", &(struct render_options){0}, &out), STR("/home/u/x/site-packages/torch")));
	buf_release(&out);
	table_release(&t);
}

static void add_shape(struct table *t, const char *shape, int64_t total)
{
	table_row(t);
	table_set_str(t, 0, STR("conv2d"));
	table_set_str(t, 1, str_from(shape));
	table_set_i64(t, 3, total);
	table_set_i64(t, 4, total / 2);
	table_set_i64(t, 5, total * 2);
	table_set_str(t, 6, STR("memory"));
	table_set_f64(t, 7, (double)total / 100);
}

static void make_wide(struct table *t)
{
	table_init(t, "w", "W");
	TABLE_COLUMN(t, .id = "op", .title = "Op", .help = "", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "shape", .title = "Shape", .help = "", .type = CELL_STR, .flags = COLUMN_WIDE);
	TABLE_COLUMN(t, .id = "note", .title = "Note", .help = "", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "total_ns", .title = "Total", .help = "", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "min_ns", .title = "Min", .help = "", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_MINOR);
	TABLE_COLUMN(t, .id = "bytes", .title = "Bytes", .help = "", .type = CELL_I64, .unit = UNIT_BYTES);
	TABLE_COLUMN(t, .id = "bound", .title = "Bound", .help = "", .type = CELL_STR, .flags = COLUMN_ANSWER);
	TABLE_COLUMN(t, .id = "peak_pct", .title = "Peak", .help = "", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_ANSWER);
	add_shape(t, "N=1,C=128,H=16,W=16,fp32", 900);
	add_shape(t, "N=1,C=128,H=64,W=64,fp32", 800);
	add_shape(t, "N=1,C=128,H=32,W=32,fp32", 700);
}

/* What says nothing goes first, then decoration; answers stay, and rows that differ look different. */
static void test_text_leaves_out_the_least(void **state)
{
	struct table t;
	struct buf out = {0};
	make_wide(&t);
	assert_true(str_has(render(&t, "text", &(struct render_options){.width = 90}, &out),
	                    STR("Op      Shape                     Note   Total     Min    Bytes  Bound     Peak\n")));
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 64}, &out).p,
	                    "W\n"
	                    "Shape                      Total     Min    Bytes    Peak\n"
	                    "────────────────────────  ──────  ──────  ───────  ──────\n"
	                    "N=1,C=128,H=16,W=16,fp32  900 ns  450 ns  1.8 KiB  9.00 %\n"
	                    "N=1,C=128,H=64,W=64,fp32  800 ns  400 ns  1.6 KiB  8.00 %\n"
	                    "N=1,C=128,H=32,W=32,fp32  700 ns  350 ns  1.4 KiB  7.00 %\n"
	                    "in every row: Op = conv2d; Bound = memory\n"
	                    "empty in every row: Note\n");
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 30}, &out).p,
	                    "W\n"
	                    "Shape          Total    Peak\n"
	                    "────────────  ──────  ──────\n"
	                    "…H=16,W=16,…  900 ns  9.00 %\n"
	                    "…H=64,W=64,…  800 ns  8.00 %\n"
	                    "…H=32,W=32,…  700 ns  7.00 %\n"
	                    "in every row: Op = conv2d;\n"
	                    "Bound = memory\n"
	                    "left out of every cell: Shape\n"
	                    "N=1,C=128,…fp32\n"
	                    "empty in every row: Note\n"
	                    "no room for: min_ns, bytes\n"
	                    "(--columns chooses)\n");
	buf_release(&out);
	table_release(&t);
}

/* A column of zeros gives way before one that says something, although it stands before it, and is named; a device 0 is no zero. */
static void test_text_leaves_out_zeros(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "z", "Z");
	TABLE_COLUMN(&t, "device", "Device", "", CELL_I64);
	TABLE_COLUMN(&t, "copies_ns", "Copies", "", CELL_I64, UNIT_NS);
	TABLE_COLUMN(&t, "sets_ns", "Sets", "", CELL_I64, UNIT_NS);
	TABLE_COLUMN(&t, "cpu_ns", "CPU", "", CELL_I64, UNIT_NS);
	table_row(&t);
	table_set_i64(&t, 0, 0);
	table_set_i64(&t, 1, 0);
	table_set_i64(&t, 3, 7);
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 14}, &out).p,
	                    "Z\n"
	                    "Device   CPU\n"
	                    "──────  ────\n"
	                    "     0  7 ns\n"
	                    "empty in every\n"
	                    "row: Sets\n"
	                    "0 in every\n"
	                    "row: Copies\n");
	assert_true(str_has(render(&t, "text", &(struct render_options){.width = 40}, &out), STR("Copies")));
	buf_release(&out);
	table_release(&t);
}

/* What was asked for is never left out, even where a line gets too long by that. */
static void test_text_keeps_what_was_asked_for(void **state)
{
	struct table t;
	struct buf out = {0};
	make_wide(&t);
	t.data[4].col.flags |= COLUMN_ASKED;
	struct str text = render(&t, "text", &(struct render_options){.width = 40}, &out);
	assert_true(str_has(text, STR("  Min")) && str_has(text, STR("no room for: ")) && str_has(text, STR("bytes")));
	assert_int_equal(table_select(&t, STR("op,note,min_ns,bytes,total_ns"), NULL), 0);
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 20}, &out).p,
	                    "W\n"
	                    "Op      Note     Min    Bytes   Total\n"
	                    "──────  ────  ──────  ───────  ──────\n"
	                    "conv2d  -     450 ns  1.8 KiB  900 ns\n"
	                    "conv2d  -     400 ns  1.6 KiB  800 ns\n"
	                    "conv2d  -     350 ns  1.4 KiB  700 ns\n");
	buf_release(&out);
	table_release(&t);
}

/* What rows are grouped by is cut down instead, so that measures fit as well; unless it is the same in all of them. */
static void test_text_keeps_what_groups(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "g", "G");
	TABLE_COLUMN(&t, "name", "Name", "", CELL_STR, UNIT_NONE, COLUMN_ANSWER);
	TABLE_COLUMN(&t, "shape", "Shape", "", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_GROUP);
	TABLE_COLUMN(&t, "thread", "Thread", "", CELL_STR, UNIT_NONE, COLUMN_GROUP);
	TABLE_COLUMN(&t, "calls", "Calls", "", CELL_I64, UNIT_COUNT, COLUMN_ANSWER);
	TABLE_COLUMN(&t, "bytes", "Bytes", "", CELL_I64, UNIT_COUNT, COLUMN_ANSWER);
	for (int i = 0; i < 3; i++) {
		table_row(&t);
		table_set_fmt(&t, 0, "a name that is rather long %d", i);
		table_set_fmt(&t, 1, "[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, %d]]", i);
		table_set_str(&t, 2, STR("main"));
		table_set_i64(&t, 3, i);
		table_set_i64(&t, 4, 1000 + i);
	}
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 40}, &out).p,
	                    "G\n"
	                    "Name          Shape  Calls  Bytes\n"
	                    "────────────  ─────  ─────  ─────\n"
	                    "a name…ong 0  … 0]]      0  1,000\n"
	                    "a name…ong 1  … 1]]      1  1,001\n"
	                    "a name…ong 2  … 2]]      2  1,002\n"
	                    "in every row: Thread = main\n"
	                    "left out of every cell: Shape [[1, 2, 3,\n"
	                    "4], [5, 6, 7, 8], [9, 10,…\n");
	buf_release(&out);
	table_release(&t);
}

static void test_rows_unless_told(void **state)
{
	struct table t;
	table_init(&t, "t", "T");
	assert_int_equal(render_rows(renderer_find(STR("text")), &t), 30);
	assert_int_equal(render_rows(renderer_find(STR("html")), &t), 10000);
	assert_int_equal(render_rows(renderer_find(STR("csv")), &t), 0);
	t.layout = "torch-2.14";
	assert_int_equal(render_rows(renderer_find(STR("text")), &t), 100);
	assert_int_equal(render_rows(renderer_find(STR("html")), &t), 10000);
	table_release(&t);
}

/* Nor does a title of one word that is longer than the text below may be. */
static void test_text_title_is_cut(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "t", "T");
	TABLE_COLUMN(&t, "n", "N", "", CELL_STR);
	TABLE_COLUMN(&t, "v", "EnvironmentVariables", "", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_ANSWER);
	table_row(&t);
	table_set_str(&t, 0, STR("name"));
	table_set_str(&t, 1, STR("0123456789 0123456789 0123456789"));
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 16}, &out).p,
	                    "T\nN     Envir…bles\n────  ──────────\nname  01234…6789\n");
	for (unsigned width = 1; width < 40; width++)
		render(&t, "text", &(struct render_options){.width = width}, &out);
	buf_release(&out);
	table_release(&t);
}

static void assert_alike(const char *const *texts, bool path, size_t width, enum text_how how, unsigned distinct,
                         const char *first)
{
	struct text_alike a;
	struct buf out = {0};
	unsigned n;
	text_alike_init(&a, path);
	for (const char *const *t = texts; *t; t++)
		text_alike_add(&a, str_from(*t));
	assert_int_equal(text_alike_choose(&a, width, &n), how);
	assert_int_equal(n, distinct);
	text_alike_put(&a, how, str_from(texts[0]), width, &out);
	assert_int_equal(text_width(buf_view(&out)), width);
	buf_char(&out, 0);
	assert_string_equal(out.p, first);
	buf_release(&out);
	text_alike_release(&a);
}

static void test_cut_texts_differ(void **state)
{
	static const char *const ends[] = {"gemm_f16_128x64_nn", "gemm_f16_128x64_nt", NULL};
	static const char *const middles[] = {"N=1,C=128,H=16,R=7,g=1", "N=1,C=128,H=64,R=7,g=1", "-", NULL};
	static const char *const lengths[] = {"net/a/b/c/weight", "net/d/weight", "net/e/f/weight", NULL};
	static const char *const paths[] = {"model/layers/3/mlp", "model/layers/13/mlp", NULL};
	static const char *const ops[] = {"net/SelfAttention_0/attention_of_all", "net/SelfAttention_1/attention_of_all", NULL};
	static const char *const one[] = {"N=1,C=128,g=1", "-", "N=1,C=128,g=1", NULL}; /* shared, but then nothing would be left */
	static const char *const same[] = {"aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL};
	assert_alike(ends, false, 11, TEXT_HEAD, 2, "gemm_f…4_nn");
	assert_alike(middles, false, 8, TEXT_SHARED_HEAD, 3, "…H=16,… ");
	assert_alike(lengths, false, 8, TEXT_SHARED_HEAD, 3, "…a/b/c/…");
	assert_alike(paths, true, 12, TEXT_END, 2, "…ayers/3/mlp");
	assert_alike(ops, true, 20, TEXT_END, 2, "…_0/attention_of_all");
	assert_alike(one, false, 9, TEXT_HEAD, 2, "N=1,…,g=1");
	assert_alike(same, false, 8, TEXT_HEAD, 1, "aaaa…aaa");
}

static void test_width_that_tells_texts_apart(void **state)
{
	struct text_alike a;
	struct buf out = {0};
	text_alike_init(&a, false);
	text_alike_add(&a, STR("N=1,C=128,H=16,R=7,g=1"));
	text_alike_add(&a, STR("N=1,C=128,H=17,R=7,g=1"));
	assert_int_equal(text_alike_width(&a, 3, 22), 4); /* "…7,…" */
	assert_int_equal(text_alike_width(&a, 10, 22), 10);
	text_alike_put_shared(&a, &out);
	buf_char(&out, 0);
	assert_string_equal(out.p, "N=1,C=128,…R=7,g=1");
	buf_release(&out);
	text_alike_release(&a);
}

/* The sizes of a product, a key, stay whole at the cost of measures; a sentence that holds for all rows is not cut in its middle, a name is. */
static void test_text_keeps_keys_and_sentences(void **state)
{
	static const char *const hint = "float32: the Tensor Cores of this GPU, where it has any, take types of 16 bits and less";
	struct table t;
	struct buf out = {0};
	table_init(&t, "g", "G");
	TABLE_COLUMN(&t, "op", "Op", "", CELL_STR);
	TABLE_COLUMN(&t, "shape", "Shape", "", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_ANSWER);
	TABLE_COLUMN(&t, "hint", "Hint", "", CELL_STR, UNIT_NONE, COLUMN_WIDE);
	TABLE_COLUMN(&t, "path", "Path", "", CELL_STR, UNIT_NONE, COLUMN_WIDE);
	TABLE_COLUMN(&t, "total_ns", "Total", "", CELL_I64, UNIT_NS, COLUMN_ANSWER);
	TABLE_COLUMN(&t, "flops", "FLOPs", "", CELL_I64, UNIT_COUNT);
	TABLE_COLUMN(&t, "bytes", "Bytes", "", CELL_I64, UNIT_COUNT);
	for (int i = 0; i < 2; i++) {
		table_row(&t);
		table_set_str(&t, 0, i ? STR("mm") : STR("addmm"));
		table_set_str(&t, 1, i ? STR("B=16,M=5185,N=64,K=5185,bf16") : STR("B=16,M=5185,N=5185,K=64,bf16"));
		table_set_str(&t, 2, str_from(hint));
		table_set_str(&t, 3, STR("/a_model_with_a_long_name/an_encoder_with_a_long_name/a_layer_with_a_long_name"));
		table_set_i64(&t, 4, 900 + i);
		table_set_i64(&t, 5, 1234567890 + i);
		table_set_i64(&t, 6, 1234567890 + i);
	}
	struct str text = render(&t, "text", &(struct render_options){.width = 70}, &out);
	assert_true(str_has(text, STR("B=16,M=5185,N=5185,K=64,bf16")));
	assert_true(str_has(text, STR("no room for: bytes")));
	assert_true(str_has(text, STR("in every row: Hint = float32: the Tensor Cores of this GPU, where it\nhas any, take types of 16 bits and less; Path =\n")));
	assert_true(str_has(text, STR("/a_model_with_a_long_name/an_encoder_wit…ame/a_layer_with_a_long_name")));
	buf_release(&out);
	table_release(&t);
}

static void test_text_records(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "findings", "Findings");
	TABLE_COLUMN(&t, .id = "severity", .title = "Severity", .type = CELL_STR);
	TABLE_COLUMN(&t, .id = "advice", .title = "Advice", .type = CELL_STR, .flags = COLUMN_PROSE);
	TABLE_COLUMN(&t, .id = "gain_ns", .title = "Gain", .type = CELL_I64, .unit = UNIT_NS);
	table_row(&t);
	table_set_str(&t, 0, STR("high"));
	table_set_str(&t, 1, STR("Set num_workers to more than zero and see."));
	table_set_i64(&t, 2, 1500);
	assert_string_equal(render(&t, "text", &(struct render_options){.width = 34}, &out).p,
	                    "Findings\n"
	                    "\n"
	                    "high  Gain: 1.500 us\n"
	                    "  Advice  Set num_workers to more\n"
	                    "          than zero and see.\n");
	buf_release(&out);
	table_release(&t);
}

static void assert_cell(enum unit unit, int64_t v, const char *expected)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "t", "T");
	TABLE_COLUMN(&t, .id = "v", .title = "V", .type = CELL_I64, .unit = unit);
	table_row(&t);
	table_set_i64(&t, 0, v);
	format_cell(&t, 0, 0, &out);
	buf_char(&out, 0);
	assert_string_equal(out.p, expected);
	buf_release(&out);
	table_release(&t);
}

static void test_human_units(void **state)
{
	assert_cell(UNIT_NS, 0, "0 ns");
	assert_cell(UNIT_NS, 999, "999 ns");
	assert_cell(UNIT_NS, 1000, "1.000 us");
	assert_cell(UNIT_NS, 999999, "999.999 us");
	assert_cell(UNIT_NS, 999999999, "1.000 s"); /* not 1000.000 ms */
	assert_cell(UNIT_NS, -1234567, "-1.235 ms");
	assert_cell(UNIT_NS, 3600000000000, "3,600.000 s");
	assert_cell(UNIT_TIME_NS, 1623143089861000123, "1623143089.861000123 s");
	assert_cell(UNIT_TIME_NS, INT64_MIN, "-9223372036.854775808 s");
	assert_cell(UNIT_BYTES, 1023, "1,023 B");
	assert_cell(UNIT_BYTES, 524288, "512.0 KiB");
	assert_cell(UNIT_BYTES, (1 << 20) - 1, "1.0 MiB");
	assert_cell(UNIT_COUNT, -1234567, "-1,234,567");
	assert_cell(UNIT_COUNT, INT64_MIN, "-9,223,372,036,854,775,808");
	assert_cell(UNIT_NONE, 123456, "123456");
	assert_cell(UNIT_FLOPS, 2500000000, "2.500 GFLOP");
}

static void test_shortest_double(void **state)
{
	static const double v[] = {0.1, 1.0 / 3, 1e300, 5e-324, 123456789012345678.0, 0, -2.5, 100};
	static const char *const text[] = {"0.1", "0.3333333333333333", "1e+300", "4.94065645841247e-324",
	                                   "1.23456789012346e+17", "0", "-2.5", "100"};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct buf b = {0};
		number_shortest(&b, v[i]);
		buf_char(&b, 0);
		assert_true(strtod(b.p, NULL) == v[i]);
		if (i != 4) /* the digits chosen there are the C library's business */
			assert_string_equal(b.p, text[i]);
		buf_release(&b);
	}
}

/* As printf and strtod say it, of doubles of all sizes: with few digits, with all, and beside powers of ten and of two. */
static void test_shortest_as_printf(void **state)
{
	enum { DOUBLES = 60000 };
	uint64_t r = 88172645463325252u;
	struct buf b = {0};
	for (int i = 0; i < DOUBLES; i++) {
		r ^= r << 13, r ^= r >> 7, r ^= r << 17;
		int tens = (int)(r >> 40) % 24 - 6;
		double v = (double)(int64_t)(r % (i % 3 ? 1000003 : 1000000000000037)) / (i % 5 ? 1000 : 7) * pow(10, i % 4 ? 0 : tens);
		v = i % 11 ? v : nextafter(i % 2 ? pow(10, tens) : ldexp(1, tens), i % 7 - 3);
		v = i % 2 ? v : -v;
		char wanted[40];
		for (int digits = 15; digits <= 17; digits++) {
			snprintf(wanted, sizeof wanted, "%.*g", digits, v);
			if (strtod(wanted, NULL) == v)
				break;
		}
		buf_clear(&b);
		number_shortest(&b, v);
		buf_char(&b, 0);
		assert_string_equal(b.p, wanted);
	}
	buf_release(&b);
}

static void test_html_is_escaped(void **state)
{
	struct table t;
	struct buf out = {0};
	make(&t);
	add(&t, STR("<script>alert('x')</script>"), 5, 50, STR("\"quoted\" & \x1b\xff"));
	table_note(&t, "<b>note</b>");
	table_note(&t, "see `--steps=<N>`, or `a`; one ` alone");
	struct str page = render(&t, "html", &(struct render_options){.input = "<i>.json", .choice = STR("--filter=<x>")}, &out);
	assert_true(str_has(page, STR("<li>see <code>--steps=&lt;N&gt;</code>, or <code>a</code>; one ` alone</li>")));
	assert_true(str_has(page, STR("&lt;i&gt;.json <code>--filter=&lt;x&gt;</code>")));
	assert_true(str_has(page, STR("<button type=button class=more aria-expanded=false>1 more column</button>")));
	assert_true(str_has(page, STR("class=\"n d\" title=\"extra\"")) && str_has(page, STR("<td class=\"n z d\">-</td>")));
	assert_false(str_has(page, STR("<script>alert")));
	assert_true(str_has(page, STR("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;")));
	assert_true(str_has(page, STR("&quot;quoted&quot; &amp; \\x1b\\xff")));
	assert_true(str_has(page, STR("&lt;b&gt;note")));
	assert_true(str_has(page, STR("&lt;i&gt;.json")));
	assert_false(str_has(page, STR("http://")) || str_has(page, STR("https://")));
	const char *path = getenv("OPSCOPE_TEST_HTML"); /* for a look at it in a browser */
	FILE *f = path ? fopen(path, "w") : NULL;
	if (f) {
		fwrite(page.p, 1, page.n, f);
		fclose(f);
	}
	buf_release(&out);
	table_release(&t);
}

/* Whoever writes the names in a trace must not write markup, nor mention users, where the table is put. */
static void test_markdown(void **state)
{
	struct table t;
	struct buf out = {0};
	table_init(&t, "a", "A *title*");
	TABLE_COLUMN(&t, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(&t, .id = "word", .title = "Word", .type = CELL_STR);
	TABLE_COLUMN(&t, .id = "time_ns", .title = "Time", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(&t, .id = "more", .title = "More", .type = CELL_I64, .flags = COLUMN_DETAIL);
	table_row(&t);
	table_set_str(&t, 0, STR("a|b `@user` <img src=x>\n| --- |"));
	table_set_str(&t, 1, STR("plain"));
	table_set_i64(&t, 2, 1500000);
	table_row(&t);
	table_note(&t, "@user [see](http://x) `--by=<op>`, ` alone, 3 * 4, #12 www.x");
	t.hidden_rows = 2;
	struct table *said = table_section(&t, "said", "Said");
	said->lead = true;
	TABLE_COLUMN(said, .id = "head", .title = "Head", .type = CELL_STR);
	TABLE_COLUMN(said, .id = "text", .title = "Text", .type = CELL_STR, .flags = COLUMN_PROSE);
	table_row(said);
	table_set_str(said, 0, STR("high"));
	table_set_str(said, 1, STR("B is <slower>: `x`"));
	table_row(said);
	table_set_str(said, 1, STR("+1 ms /`@octocat``` forward"));
	struct str page = render(&t, "markdown", &(struct render_options){0}, &out);
	assert_string_equal(page.p,
		"### A \\*title\\*\n\n"
		"**high**  \nB is &lt;slower&gt;: `x`\n\n"
		"+1 ms /\\`\\@\xe2\x80\x8boctocat\\`\\`\\` forward\n\n"
		"| Name | Word | Time |\n| --- | --- | ---: |\n"
		"| `` a\\|b `@user` <img src=x>\\n\\| --- \\| `` | plain | 1.500 ms |\n"
		"| - | - | - |\n\n"
		"2 more rows.\n\n"
		"- \\@\xe2\x80\x8buser \\[see\\](http:\xe2\x80\x8b//x) `--by=<op>`, \\` alone, 3 \\* 4, \\#\xe2\x80\x8b" "12 www.\xe2\x80\x8bx\n\n");
	buf_release(&out);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv_exact),
		cmocka_unit_test(test_csv_hostile),
		cmocka_unit_test(test_json_exact),
		cmocka_unit_test(test_text_plain),
		cmocka_unit_test(test_text_fits_any_width),
		cmocka_unit_test(test_text_tree),
		cmocka_unit_test(test_cut_in_the_middle),
		cmocka_unit_test(test_cut_stack),
		cmocka_unit_test(test_stack_paths_are_short),
		cmocka_unit_test(test_stack_column),
		cmocka_unit_test(test_text_leaves_out_the_least),
		cmocka_unit_test(test_text_keeps_what_was_asked_for),
		cmocka_unit_test(test_text_keeps_what_groups),
		cmocka_unit_test(test_rows_unless_told),
		cmocka_unit_test(test_text_title_is_cut),
		cmocka_unit_test(test_cut_texts_differ),
		cmocka_unit_test(test_width_that_tells_texts_apart),
		cmocka_unit_test(test_text_keeps_keys_and_sentences),
		cmocka_unit_test(test_text_records),
		cmocka_unit_test(test_text_leaves_out_zeros),
		cmocka_unit_test(test_human_units),
		cmocka_unit_test(test_shortest_double),
		cmocka_unit_test(test_shortest_as_printf),
		cmocka_unit_test(test_html_is_escaped),
		cmocka_unit_test(test_markdown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
