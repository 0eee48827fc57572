/* Steps: which there are, where they begin and end, which count (analysis/steps/steps.h). Marks other than torch's profiler's: test_iterations.c. */
#include "profile_builder.h"

#include "analysis/steps/steps.h"

enum { PASSES = PASS_NEST | PASS_CORRELATE | PASS_STEPS };

/* Step i is [100 i, 100 i + 90) on the host; its works are launched at its begin. */
static void add_step(struct builder *m, uint32_t t, int i, int works, int64_t device_start, int64_t device_end)
{
	char name[32];
	snprintf(name, sizeof name, "ProfilerStep#%d", i);
	builder_span(m, t, SPAN_USER, name, 100 * i, 100 * i + 90);
	for (int k = 0; k < works; k++)
		builder_launch(m, t, 100 * i + 2 * k, 100 * i + 2 * k + 1, 0, "kernel", device_start, device_end);
}

static void assert_step(const struct step *s, const char *name, int64_t number, int64_t start, int64_t end)
{
	assert_str_equal(s->name, name);
	assert_int_equal(s->number, number);
	assert_int_equal(s->start_ns, start);
	assert_int_equal(s->end_ns, end);
}

/* A step ends when its device work has, and the next begins there. */
static void test_stretched_to_device(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_launch(&m, t, 150, 160, 0, "warm-up", 170, 230);
	add_step(&m, t, 2, 1, 240, 250);  /* the device is busy with what was before until 230 */
	add_step(&m, t, 3, 1, 310, 420);  /* until 420: step 4 begins then */
	add_step(&m, t, 4, 1, 430, 440);
	struct profile *p = builder_finish(&m, PASSES);
	const struct steps *s = p->steps;
	assert_int_equal(s->source, STEPS_PROFILER);
	assert_int_equal(s->n, 3);
	assert_false(s->whole_trace);
	assert_step(&s->v[0], "2", 2, 230, 290);
	assert_step(&s->v[1], "3", 3, 300, 420);
	assert_step(&s->v[2], "4", 4, 420, 490);
	assert_int_equal(s->v[2].host_start_ns, 400);
	assert_int_equal(s->v[1].device_ops, 1);
	assert_int_equal(s->v[1].launches, 1);
	profile_free(p);
}

/* The last steps of a recording that ended too soon do not count; where no step has work, that is not why. */
static void test_ends_without_work(void **state)
{
	static const struct { int works[4]; unsigned n, by_share; } v[] = {
		{{5, 5, 5, 5}, 4, 4},
		{{5, 5, 5, 0}, 3, 3},
		{{5, 0, 5, 0}, 3, 3}, /* one in the middle stays */
		{{5, 0, 0, 0}, 1, 1},
		{{0, 0, 0, 0}, 4, 4},
		{{5, 5, 5, 4}, 4, 4}, /* the limit: 0.8 times the step before */
		{{5, 5, 5, 3}, 4, 3}, /* a short step is whole by our rule: nothing of it was lost */
	};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct builder m;
		builder_begin(&m);
		uint32_t t = builder_track(&m, "1", "1");
		for (int k = 0; k < 4; k++)
			add_step(&m, t, k, v[i].works[k], 100 * k + 20, 100 * k + 30);
		struct profile *p = builder_finish(&m, PASSES);
		assert_int_equal(p->steps->total, 4);
		assert_int_equal(p->steps->n, v[i].n);
		assert_int_equal(steps_of_profiler(p, 0.8, &p->arena)->n, v[i].by_share);
		profile_free(p);
	}
}

/* More than a fifth of the launches of the last step have no device work: it was cut. */
static void test_lost_launches(void **state)
{
	static const struct { int works, lost; unsigned n; } v[] = {{8, 0, 2}, {8, 2, 2}, {7, 2, 1}, {8, 3, 1}};
	for (size_t k = 0; k < sizeof v / sizeof v[0]; k++) {
		struct builder m;
		builder_begin(&m);
		uint32_t t = builder_track(&m, "1", "1");
		add_step(&m, t, 0, 8, 20, 30);
		add_step(&m, t, 1, v[k].works, 120, 130);
		for (int i = 0; i < v[k].lost; i++)
			builder_call(&m, t, "cudaLaunchKernel", 150 + 2 * i, 151 + 2 * i, 1000 + i);
		builder_call(&m, t, "cudaEventRecord", 180, 181, 2000); /* launches nothing anywhere: no evidence */
		struct profile *p = builder_finish(&m, PASSES);
		assert_int_equal(p->steps->v[1].launches, v[k].works + v[k].lost);
		assert_int_equal(p->steps->v[1].launches_lost, v[k].lost);
		assert_int_equal(p->steps->n, v[k].n);
		profile_free(p);
	}
}

/* A call across a border is of no step. */
static void test_crossing_calls(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	add_step(&m, t, 0, 1, 20, 30);
	add_step(&m, t, 1, 1, 120, 130);
	builder_launch(&m, t, 85, 105, 0, "crossing", 500, 600);
	struct profile *p = builder_finish(&m, PASSES);
	assert_int_equal(p->steps->v[0].device_ops, 1);
	assert_int_equal(p->steps->v[1].device_ops, 1);
	assert_int_equal(p->steps->v[1].end_ns, 190);
	profile_free(p);
}

static void test_names_without_a_number(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_USER, "ProfilerStep#b", 100, 200);
	builder_span(&m, t, SPAN_USER, "ProfilerStep#a", 0, 100);
	struct profile *p = builder_finish(&m, PASSES);
	assert_int_equal(p->steps->n, 2);
	assert_step(&p->steps->v[0], "a", 0, 0, 100);
	assert_step(&p->steps->v[1], "b", 1, 100, 200);
	profile_free(p);
}

/* A step that was not recorded to its end stands aside, unless there is no other. */
static void test_cut(void **state)
{
	for (int whole = 0; whole < 2; whole++) {
		struct builder m;
		builder_begin(&m);
		uint32_t t = builder_track(&m, "1", "1");
		if (whole)
			builder_span(&m, t, SPAN_USER, "ProfilerStep#1", 0, 100);
		struct span_row cut = builder_span_row(&m, t, SPAN_USER, "ProfilerStep#2", 100, 150);
		cut.args = builder_text_args(&m, (const char *const[]){arg_key_text[ARG_NOT_TO_END], "not to its end", NULL});
		build_span(&m.b, &cut);
		struct profile *p = builder_finish(&m, PASSES);
		assert_int_equal(p->steps->cut, 1);
		assert_int_equal(p->steps->n, 1);
		assert_int_equal(p->steps->v[0].number, whole ? 1 : 2);
		assert_int_equal(p->steps->v[0].cut, !whole);
		assert_int_equal(p->steps->edges, whole);
		profile_free(p);
	}
}

/* Without steps: from the first to the last device work; what is before and after stands apart. Of ProfilerStep alone, from the first to the last op. */
static void test_window(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_OP, "aten::empty", 10, 20);
	builder_span(&m, t, SPAN_OP, "aten::mm", 100, 200);
	builder_launch(&m, t, 110, 120, 0, "gemm", 130, 180);
	builder_launch(&m, t, 190, 195, 0, "add", 240, 260);
	builder_span(&m, t, SPAN_USER, "save", 400, 500);
	struct profile *p = builder_finish(&m, PASSES);
	const struct steps *s = p->steps;
	assert_true(s->whole_trace);
	assert_int_equal(s->source, STEPS_NONE);
	assert_int_equal(s->window, WINDOW_DEVICE);
	assert_int_equal(s->n, 1);
	assert_step(&s->v[0], "0", 0, 130, 260);
	assert_int_equal(s->v[0].device_ops, 2); /* gemm, too, which is launched before the window */
	assert_int_equal(s->v[0].host_start_ns, 110); /* where the first of that work was launched */
	assert_int_equal(s->edges, 2);
	assert_step(&s->edge[0], "0", 0, 10, 130);
	assert_step(&s->edge[1], "0", 0, 260, 500);
	const struct steps *marked = steps_of_profiler(p, 0, &p->arena);
	assert_true(marked->whole_trace);
	assert_int_equal(marked->v[0].host_start_ns, 10);
	assert_int_equal(marked->v[0].host_end_ns, 200);
	profile_free(p);
}

static void test_window_without_device(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_OP, "aten::mm", 100, 200);
	builder_span(&m, t, SPAN_USER, "save", 400, 500);
	struct profile *p = builder_finish(&m, PASSES);
	assert_int_equal(p->steps->window, WINDOW_RECORDING);
	assert_int_equal(p->steps->edges, 0);
	assert_step(&p->steps->v[0], "0", 0, 100, 500);
	profile_free(p);
}

static void test_nothing_recorded(void **state)
{
	struct builder m;
	builder_begin(&m);
	struct profile *p = builder_finish(&m, PASSES);
	assert_int_equal(p->steps->n, 0);
	assert_true(p->steps->whole_trace);
	profile_free(p);
}

/* Which times are in steps A..B: what lies between two steps is in none. */
static void test_times_in_steps(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	add_step(&m, t, 1, 1, 120, 250); /* on the device until 250 */
	add_step(&m, t, 2, 1, 260, 270);
	add_step(&m, t, 3, 1, 360, 370);
	struct profile *p = builder_finish(&m, PASSES);
	const struct steps *s = p->steps;
	static const struct { int64_t first, last, at; bool host, device; } v[] = {
		{1, 3, 99, false, false}, {1, 3, 100, true, true},  {1, 3, 189, true, true}, {1, 3, 195, false, true}, {2, 2, 200, true, false},
		{2, 2, 249, true, false}, {2, 2, 250, true, true},  {1, 1, 249, false, true}, {2, 3, 295, false, false}, {3, 3, 389, true, true},
		{3, 3, 390, false, false}, {INT64_MIN, 1, 150, true, true}, {4, 9, 350, false, false},
	};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		bool host = steps_have_host(s, s->n, v[i].first, v[i].last, v[i].at), device = steps_have_device(s, s->n, v[i].first, v[i].last, v[i].at);
		if (host != v[i].host || device != v[i].device)
			fail_msg("%d in %d..%d: %d %d", (int)v[i].at, (int)v[i].first, (int)v[i].last, host, device);
	}
	profile_free(p);
}

static void test_range_text(void **state)
{
	assert_string_equal(steps_range_text(7, 9).s, "--steps=7..9");
	assert_string_equal(steps_range_text(INT64_MIN, 9).s, "--steps=..9");
	assert_string_equal(steps_range_text(-2, INT64_MAX).s, "--steps=-2..");
	assert_string_equal(steps_range_text(STEP_OUTSIDE, STEP_OUTSIDE).s, "--steps=outside");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stretched_to_device), cmocka_unit_test(test_ends_without_work), cmocka_unit_test(test_lost_launches),
		cmocka_unit_test(test_crossing_calls), cmocka_unit_test(test_names_without_a_number), cmocka_unit_test(test_cut), cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_without_device), cmocka_unit_test(test_nothing_recorded), cmocka_unit_test(test_times_in_steps),
		cmocka_unit_test(test_range_text),
	};
	return RUN_TESTS(tests);
}
