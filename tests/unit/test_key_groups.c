/* Events by key: what makes a group and what it adds up to (report/parts/key_groups.h). */
#include "profile_builder.h"

#include "base/buf.h"
#include "report/parts/key_groups.h"

struct grouped {
	struct builder m;
	struct torch_events *t;
	struct key_groups *g;
};

static void op(struct builder *m, uint32_t track, const char *name, int64_t start, int64_t end, const char *dims, const char *overload)
{
	struct arg_pair pairs[2];
	unsigned n = 0;
	if (dims)
		pairs[n++] = (struct arg_pair){builder_text(m, "Input Dims"), builder_text(m, dims), false};
	if (overload)
		pairs[n++] = (struct arg_pair){builder_text(m, "Overload Name"), builder_text(m, overload), true};
	struct span_row r = builder_span_row(m, track, SPAN_OP, name, start, end);
	r.args = build_args(&m->b, pairs, n);
	build_span(&m->b, &r);
}

static void begin(struct grouped *x, unsigned parts, const char *compat)
{
	struct key_choice c = {.parts = parts};
	builder_finish(&x->m, PASS_NEST | PASS_CORRELATE);
	x->t = torch_events_new(x->m.p, torch_rules_of(compat), key_choice_want(&c));
	x->g = key_groups_new(x->t, &c);
}

static void end(struct grouped *x)
{
	key_groups_free(x->g);
	torch_events_free(x->t);
	profile_free(x->m.p);
}

static void assert_group(const struct grouped *x, uint32_t i, const char *name, uint32_t calls, int64_t self, int64_t total)
{
	assert_true(i < x->g->n);
	const struct key_group *v = &x->g->v[i];
	assert_str_equal(intern_get(&x->t->keys, v->id.name), name);
	assert_int_equal(v->calls, calls);
	assert_int_equal(v->host_self, self);
	assert_int_equal(v->host_total, total);
}

static void few_ops(struct grouped *x)
{
	builder_begin(&x->m);
	uint32_t one = builder_track(&x->m, "1", "1"), two = builder_track(&x->m, "1", "2");
	op(&x->m, one, "aten::a", 0, 100, "[[2, 3]]", "Tensor");
	op(&x->m, one, "aten::b", 10, 40, "[[2, 3]]", NULL);
	op(&x->m, one, "aten::a", 200, 220, "[[4, 3]]", "Scalar");
	op(&x->m, two, "aten::a", 300, 340, "[[2, 3]]", "Scalar");
}

static void test_by_name(void **state)
{
	struct grouped x;
	few_ops(&x);
	begin(&x, 0, NULL);
	assert_int_equal(x.g->n, 2);
	assert_group(&x, 0, "aten::a", 3, 130, 160);
	assert_group(&x, 1, "aten::b", 1, 30, 30);
	assert_int_equal(x.g->all.calls, 4);
	assert_int_equal(x.g->all.host_self, 160);
	assert_int_equal(x.g->all.host_total, 190);
	assert_int_equal(stats_percentile(&x.g->durations, 0, 50), 40);
	assert_int_equal(x.g->durations.v[0].min, 20);
	assert_int_equal(x.g->durations.v[0].max, 100);
	for (uint32_t i = 0; i < x.t->n; i++)
		assert_int_equal(x.g->group_of[i], str_eqc(torch_event_name(x.t, i), "aten::b") ? 1 : 0);
	assert_int_equal(x.g->overflows, 0);
	end(&x);
}

static void test_parts(void **state)
{
	struct grouped x;
	few_ops(&x);
	begin(&x, KEY_SHAPE, NULL);
	assert_int_equal(x.g->n, 3);
	assert_group(&x, 0, "aten::a", 2, 110, 140);
	assert_group(&x, 2, "aten::a", 1, 20, 20);
	assert_str_equal(intern_get(&x.g->texts, x.g->v[2].id.shapes), "[[4, 3]]");
	end(&x);
	few_ops(&x);
	begin(&x, KEY_OVERLOAD, NULL);
	assert_int_equal(x.g->n, 3);
	assert_group(&x, 0, "aten::a", 1, 70, 100);
	assert_group(&x, 2, "aten::a", 2, 60, 60);
	end(&x);
	few_ops(&x);
	begin(&x, KEY_THREAD, NULL);
	assert_int_equal(x.g->n, 3);
	assert_group(&x, 0, "aten::a", 2, 90, 120);
	assert_group(&x, 2, "aten::a", 1, 40, 40);
	end(&x);
	few_ops(&x);
	begin(&x, KEY_SHAPE | KEY_OVERLOAD | KEY_THREAD, NULL);
	assert_int_equal(x.g->n, 4);
	end(&x);
	few_ops(&x); /* without stacks there is one group a name, and modules are no part of the key */
	begin(&x, KEY_STACK | KEY_MODULE, NULL);
	assert_int_equal(x.g->n, 2);
	end(&x);
}

/* An op and an annotation with one name: 1.13 does not tell them apart. */
static void test_annotations(void **state)
{
	static const struct { const char *compat; uint32_t groups; } want[] = {{NULL, 2}, {"torch-1.13", 1}, {"torch-2.6", 2}, {"torch-2.14", 2}};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		struct grouped x;
		builder_begin(&x.m);
		uint32_t t = builder_track(&x.m, "1", "1");
		builder_span(&x.m, t, SPAN_OP, "both", 0, 1000);
		builder_span(&x.m, t, SPAN_USER, "both", 2000, 3000);
		begin(&x, 0, want[i].compat);
		assert_int_equal(x.g->n, want[i].groups);
		assert_int_equal(x.g->all.calls, 2);
		end(&x);
	}
}

static void test_cycles(void **state)
{
	struct grouped x;
	builder_begin(&x.m);
	uint32_t t = builder_track(&x.m, "1", "1");
	builder_span(&x.m, t, SPAN_USER, "ProfilerStep#1", 100, 200);
	builder_span(&x.m, t, SPAN_USER, "ProfilerStep#5", 300, 400);
	op(&x.m, t, "aten::a", 50, 60, NULL, NULL);
	op(&x.m, t, "aten::a", 250, 260, NULL, NULL);
	op(&x.m, t, "aten::a", 310, 320, NULL, NULL);
	begin(&x, KEY_CYCLE, NULL);
	assert_int_equal(x.g->cycles.n, 2);
	assert_int_equal(x.g->n, 4);
	assert_group(&x, 0, "aten::a", 2, 20, 20);
	assert_int_equal(x.g->v[0].id.cycle, 1);
	assert_group(&x, 3, "aten::a", 1, 10, 10);
	assert_int_equal(x.g->v[3].id.cycle, 2);
	end(&x);
}

static void test_shapes_text(void **state)
{
	static const char *const want[][2] = {
		{"[[2,3],[4, 3],[]]", "[[2, 3], [4, 3], []]"}, {"[]", "[]"}, {"", "[]"}, {"[[[1,2],[3]],[5]]", "[[], [5]]"}, {"[\"\",[7]]", "[[], [7]]"},
		{"[[1, 2", "[[1, 2]"},
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		struct buf b = {0};
		torch_shapes_text(str_from(want[i][0]), &b);
		assert_str_equal(buf_view(&b), want[i][1]);
		buf_release(&b);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name), cmocka_unit_test(test_parts), cmocka_unit_test(test_annotations), cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_shapes_text),
	};
	key_groups_free(NULL);
	return RUN_TESTS(tests);
}
