/* What a report ignores may be left out (store/profile.h): its answers are those of the whole input, and so are losses and counts. */
#include "analysis/analysis.h"
#include "base/buf.h"
#include "base/folder.h"
#include "open/trace_open.h"
#include "query/report.h"
#include "render/render.h"
#include "store/save.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

/* What a report says of a profile, or why it says nothing. */
static void answer(const struct report *r, struct profile *p, const struct report_args *args, struct buf *out)
{
	struct table t;
	struct err e;
	buf_clear(out);
	if (report_run(r, p, args, &t, &e) < 0) {
		buf_cstr(out, e.msg);
		return;
	}
	assert_int_equal(renderer_find(STR("json"))->render(&t, &(struct render_options){0}, out, &e), 0);
	table_release(&t);
}

static void assert_same_text(const struct buf *a, const struct buf *b, const char *path, const struct report *r, const char *group_by)
{
	if (!str_eq(buf_view(a), buf_view(b)))
		fail_msg("%s: report %s by %s differs:\n" STR_FMT "\n" STR_FMT, path, r->name, group_by ? group_by : "default", STR_ARG(buf_view(a)), STR_ARG(buf_view(b)));
}

/* Before any pass. */
static void assert_same_reading(const struct profile *a, const struct profile *b, const char *path)
{
	assert_int_equal(a->diags.n, b->diags.n);
	for (unsigned i = 0; i < a->diags.n; i++) {
		const struct diag_entry *x = &a->diags.entry[i], *y = &b->diags.entry[i];
		if (x->count != y->count || x->level != y->level || x->first_offset != y->first_offset || strcmp(x->kind, y->kind) != 0 || !str_eq(x->message, y->message))
			fail_msg("%s: " STR_FMT " is not " STR_FMT, path, STR_ARG(x->message), STR_ARG(y->message));
	}
	assert_int_equal(profile_events(a), profile_events(b));
	assert_int_equal(a->count.rows.n, b->count.rows.n);
	for (uint32_t i = 0; i < a->count.rows.n; i++)
		assert_true(a->count.events[i] == b->count.events[i] && a->count.cat[i] == b->count.cat[i] && a->count.phase[i] == b->count.phase[i]);
	assert_int_equal(a->track.rows.n, b->track.rows.n);
	assert_int_equal(a->strings.n, b->strings.n);
}

static struct profile *read_without(const char *path, unsigned ignores)
{
	struct err e;
	return trace_open(path, &(struct input_options){.ignores = ignores}, &e);
}

static uint32_t count_frames(const struct profile *p)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		n += p->span.kind[i] == SPAN_PYTHON;
	return n;
}

struct seen {
	unsigned reports, left_out; /* bits of rows that some input has and that were left out */
};

/* All reports that ignore exactly these. */
static void compare_reports(const char *path, unsigned ignores, struct seen *seen)
{
	struct profile *left = read_without(path, ignores), *all = read_without(path, 0);
	struct buf a = {0}, b = {0};
	assert_int_equal(!left, !all);
	if (left)
		assert_same_reading(left, all, path);
	for (const struct report *const *r = report_registry; left && *r; r++) {
		const char *by = report_grouping(*r, 0);
		for (unsigned i = 0; !i || by; by = report_grouping(*r, ++i)) {
			const struct report_args args = {.group_by = by};
			if (!report_variant_of(*r, &args, NULL) || report_ignores(*r, &args) != ignores)
				continue;
			answer(*r, left, &args, &a);
			answer(*r, all, &args, &b);
			assert_same_text(&a, &b, path, *r, by);
			seen->reports++;
		}
	}
	if (left) {
		assert_int_equal(left->left_out & ~ignores, 0);
		seen->left_out |= (all->flow.rows.n && !left->flow.rows.n ? LEFT_FLOWS : 0) | (all->memory.rows.n && !left->memory.rows.n ? LEFT_MEMORY : 0) |
		                  (all->mark.rows.n && !left->mark.rows.n ? LEFT_MARKS : 0) | (all->span.aux_id && !left->span.aux_id ? LEFT_AUX_IDS : 0) |
		                  (count_frames(all) && !count_frames(left) ? LEFT_FRAMES : 0);
	}
	profile_free(left);
	profile_free(all);
	buf_release(&a);
	buf_release(&b);
}

static void compare_file(const char *path, struct seen *seen)
{
	unsigned done[64], n = 0;
	for (const struct report *const *r = report_registry; *r; r++) {
		const char *by = report_grouping(*r, 0);
		for (unsigned i = 0; !i || by; by = report_grouping(*r, ++i)) {
			const unsigned ignores = report_ignores(*r, &(struct report_args){.group_by = by});
			unsigned k = 0;
			while (k < n && done[k] != ignores)
				k++;
			if (k < n || !ignores)
				continue;
			assert_in_range(n, 0, 63);
			done[n++] = ignores;
			compare_reports(path, ignores, seen);
		}
	}
}

/* The same of an .opscope file that is made of it. */
static void compare_saved(const char *path, struct seen *seen)
{
	char saved[] = "/tmp/opscope-left-out-XXXXXX.opscope";
	struct err e;
	const int fd = mkstemps(saved, 8);
	assert_true(fd >= 0);
	close(fd);
	struct profile *p = read_without(path, 0);
	if (p && analysis_run(p, PASSES_IN_COLUMNS, &e) == 0) {
		struct save *s = save_begin(saved, 0666, 0, &e);
		assert_non_null(s);
		assert_int_equal(save_profile(s, p, &e), 0);
		assert_int_equal(save_commit(s, &e), 0);
		compare_file(saved, seen);
	}
	profile_free(p);
	unlink(saved);
}

static void compare_folder(const char *path, void (*compare)(const char *path, struct seen *seen), struct seen *seen)
{
	struct folder f;
	const char *name;
	assert_true(folder_open(&f, path));
	while ((name = folder_next(&f))) {
		struct buf file = {0};
		buf_printf(&file, "%s/%s", path, name);
		buf_char(&file, 0);
		if (str_ends(str_from(name), STR(".json")) || str_ends(str_from(name), STR(".json.gz")))
			compare(file.p, seen);
		buf_release(&file);
	}
	folder_close(&f);
}

static struct seen compare_all(void (*compare)(const char *path, struct seen *seen))
{
	static const char *const folders[] = {"", "/synthetic", "/h200"};
	const char *root = getenv("OPSCOPE_ROOT");
	struct seen seen = {0};
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		struct buf path = {0};
		buf_printf(&path, "%s/tests/data%s", root ? root : ".", folders[i]);
		buf_char(&path, 0);
		compare_folder(path.p, compare, &seen);
		buf_release(&path);
	}
	assert_in_range(seen.reports, 100, 100000);
	return seen;
}

static void test_answers(void **state)
{
	assert_int_equal(compare_all(compare_file).left_out, LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS | LEFT_FRAMES);
}

static void test_answers_of_saved(void **state)
{
	assert_int_equal(compare_all(compare_saved).left_out, LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS);
}

/* Damage in events that are left out: without times, of too many bytes, ends without a begin, and the only event of a thread. */
static const char damaged[] =
	"{\"traceEvents\": [\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": 10, \"dur\": 5, \"args\": {\"Fwd thread id\": 1, \"Sequence number\": 3}},\n"
	"{\"ph\": \"s\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": \"a\\\\q\", \"pid\": 1, \"tid\": 7, \"ts\": 11},\n"
	"{\"ph\": \"f\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": 1, \"pid\": 1, \"tid\": 1, \"ts\": \"late\"},\n"
	"{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 8, \"ts\": 12, \"args\": {\"Bytes\": 200000000000000000}},\n"
	"{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 8, \"ts\": 13, \"args\": {\"Bytes\": 200000000000000000}},\n"
	"{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 8, \"args\": {\"Bytes\": 2}},\n"
	"{\"ph\": \"C\", \"cat\": \"c\", \"name\": \"coun\\qter\", \"pid\": 1, \"tid\": 9, \"ts\": 14, \"args\": {\"value\": N/A}},\n"
	"{\"ph\": \"E\", \"cat\": \"c\", \"name\": \"x\", \"pid\": 1, \"tid\": 9, \"ts\": 15}\n"
	"]}\n";

static void test_losses(void **state)
{
	char path[] = "/tmp/opscope-left-out-XXXXXX.json";
	struct seen seen = {0};
	const int fd = mkstemps(path, 5);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, damaged, sizeof damaged - 1), sizeof damaged - 1);
	close(fd);
	compare_file(path, &seen);
	struct profile *p = read_without(path, LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS);
	assert_non_null(p);
	assert_int_equal(diag_count(&p->diags, "bad-time"), 2);
	assert_int_equal(diag_count(&p->diags, "sum-too-large"), 1);
	assert_int_equal(diag_count(&p->diags, "end-without-begin"), 1);
	assert_int_equal(profile_events(p), 8);
	profile_free(p);
	unlink(path);
}

/* The numbers of a predecessor look at everything, and other inputs keep everything. */
static void test_who_leaves_out(void **state)
{
	const struct report *r = report_find(STR("operators"));
	assert_int_equal(report_ignores(r, &(struct report_args){0}), LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS | LEFT_FRAMES | LEFT_OP_IDS);
	assert_int_equal(report_ignores(r, &(struct report_args){.key_op = "main.py(3): step"}), 0);
	assert_int_equal(report_ignores(r, &(struct report_args){.aggregation = 1}), 0);
	assert_int_equal(report_ignores(r, &(struct report_args){.group_by = "stack"}), LEFT_MEMORY | LEFT_MARKS | LEFT_OP_IDS); /* by arrows, to the forward pass */
	assert_int_equal(report_ignores(r, &(struct report_args){.compat = "tb-plugin"}), 0);
	assert_int_equal(report_ignores(report_find(STR("memory")), &(struct report_args){0}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_answers_of_saved),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_who_leaves_out),
	};
	return RUN_TESTS(tests);
}
