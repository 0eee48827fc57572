/* Spans of a repeated schedule: jumps of the step number, processes that are not in step (analysis/steps/cycles.h). */
#include "profile_builder.h"

#include "analysis/steps/cycles.h"

static void steps(struct builder *m, uint32_t track, int64_t at, int first, int last)
{
	char name[32];
	for (int i = first; i <= last; i++, at += 100) {
		snprintf(name, sizeof name, "ProfilerStep#%d", i);
		builder_span(m, track, SPAN_USER, name, at, at + 90);
	}
}

static void assert_cycle(const struct cycles *c, uint32_t i, int64_t start, int64_t end, int64_t first, int64_t last)
{
	assert_true(i < c->n);
	assert_int_equal(c->v[i].start_ns, start);
	assert_int_equal(c->v[i].end_ns, end);
	assert_int_equal(c->v[i].step_first, first);
	assert_int_equal(c->v[i].step_last, last);
}

static void test_none(void **state)
{
	struct builder m;
	struct cycles c;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_USER, "ProfilerStep#x", 0, 10);
	builder_span(&m, t, SPAN_USER, "ProfilerStep#-3", 0, 10);
	builder_span(&m, t, SPAN_CALL, "ProfilerStep#3", 0, 10);
	builder_finish(&m, 0);
	cycles_find(m.p, &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(cycle_at(&c, m.p, t, 5), 0);
	cycles_release(&c);
	profile_free(m.p);
}

static void test_jump(void **state)
{
	struct builder m;
	struct cycles c;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1"), other = builder_track(&m, "1", "2"), gpu = builder_track(&m, "0", "7");
	steps(&m, t, 100, 3, 5);
	steps(&m, other, 105, 3, 5); /* the same ones: no cycles of their own */
	steps(&m, t, 400, 7, 8);
	steps(&m, t, 600, 2, 2);     /* back: as when a profiler starts again */
	builder_finish(&m, 0);
	cycles_find(m.p, &c);
	assert_int_equal(c.n, 3);
	assert_cycle(&c, 0, 100, 395, 3, 5);
	assert_cycle(&c, 1, 400, 590, 7, 8);
	assert_cycle(&c, 2, 600, 690, 2, 2);
	static const struct { int64_t at; uint32_t cycle; } want[] = {{0, 0}, {100, 0}, {399, 0}, {400, 1}, {599, 1}, {600, 2}, {9999, 2}};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		assert_int_equal(cycle_at(&c, m.p, t, want[i].at), want[i].cycle);
		assert_int_equal(cycle_at(&c, m.p, gpu, want[i].at), want[i].cycle); /* a process without steps */
	}
	cycles_release(&c);
	profile_free(m.p);
}

/* Process 2 is one step and a half late: its first cycle ends when that of process 1 has begun the second. */
static void test_processes(void **state)
{
	struct builder m;
	struct cycles c;
	builder_begin(&m);
	uint32_t one = builder_track(&m, "1", "1"), two = builder_track(&m, "2", "1");
	steps(&m, one, 0, 3, 6);
	steps(&m, two, 150, 3, 6);
	steps(&m, one, 400, 10, 12);
	steps(&m, two, 550, 10, 12);
	builder_finish(&m, 0);
	cycles_find(m.p, &c);
	assert_int_equal(c.n, 2);
	assert_cycle(&c, 0, 0, 540, 3, 6);
	assert_cycle(&c, 1, 400, 840, 10, 12);
	assert_int_equal(cycle_at(&c, m.p, one, 450), 1);
	assert_int_equal(cycle_at(&c, m.p, two, 450), 0);
	assert_int_equal(cycle_at(&c, m.p, two, 0), 0);
	assert_int_equal(cycle_at(&c, m.p, two, 550), 1);
	cycles_release(&c);
	profile_free(m.p);
}

/* A process that did all of it later, or other steps meanwhile, is a cycle of its own. */
static void test_apart(void **state)
{
	struct builder m;
	struct cycles c;
	builder_begin(&m);
	uint32_t one = builder_track(&m, "1", "1"), two = builder_track(&m, "2", "1"), three = builder_track(&m, "3", "1");
	steps(&m, one, 0, 3, 4);
	steps(&m, two, 1000, 3, 4);
	steps(&m, three, 1010, 8, 9);
	builder_finish(&m, 0);
	cycles_find(m.p, &c);
	assert_int_equal(c.n, 3);
	assert_cycle(&c, 0, 0, 190, 3, 4);
	assert_cycle(&c, 1, 1000, 1190, 3, 4);
	assert_cycle(&c, 2, 1010, 1200, 8, 9);
	assert_int_equal(cycle_at(&c, m.p, two, 1100), 1);
	assert_int_equal(cycle_at(&c, m.p, three, 1100), 2);
	cycles_release(&c);
	profile_free(m.p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none), cmocka_unit_test(test_jump), cmocka_unit_test(test_processes), cmocka_unit_test(test_apart),
	};
	return RUN_TESTS(tests);
}
