/* Which layer work counts for: where layers come from, what they are called, the layer of backward work (analysis/tree/layers.h). */
#include "profile_builder.h"

#include "analysis/tree/layers.h"
#include "base/mem.h"

static struct profile *finish(struct builder *m)
{
	return builder_finish(m, PASS_NEST | PASS_CORRELATE);
}

static struct str layer_name(const struct layers *l, uint32_t layer)
{
	return layer == LAYER_NONE ? STR("") : intern_get(&l->names, l->v[layer].name);
}

static void assert_span(const struct layers *l, const struct profile *p, const char *span, const char *want)
{
	assert_str_equal(layer_name(l, l->of_span[builder_span_named(p, span)]), want);
}

static void assert_gpu(const struct layers *l, const struct profile *p, const char *work, const char *want)
{
	assert_str_equal(layer_name(l, layers_of_gpu(l, p, builder_gpu_named(p, work))), want);
}

static const char *type_of(const struct layers *l, const char *layer)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (str_eqc(intern_get(&l->names, l->v[i].name), layer))
			return intern_get(&l->names, l->v[i].type).p;
	fail_msg("no layer %s", layer);
	return "";
}

/* Whether there are layers is known without making them. */
static struct layers *made(const struct profile *p)
{
	struct layers *l = layers_new(p);
	assert_int_equal(layers_may_be_told(p), l->source != LAYERS_NONE);
	return l;
}

static void test_ranges(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	builder_span(&b, t, SPAN_USER, "layer:encoder", 0, 500);
	builder_span(&b, t, SPAN_USER, "layer:attention:heads 4", 100, 400); /* what is behind the next colon is no name */
	builder_op(&b, t, "aten::bmm", 200, 300, ID_NONE, -1);
	builder_launch(&b, t, 210, 220, 0, "inner", 2000, 2010);
	builder_launch(&b, t, 450, 460, 0, "outer", 2020, 2030);
	builder_span(&b, t, SPAN_USER, "layer:", 600, 700);
	builder_launch(&b, t, 610, 620, 0, "no name", 2040, 2050);
	builder_span(&b, t, SPAN_PYTHON, "nn.Module: Net_0", 800, 900); /* ranges go first */
	builder_op(&b, t, "aten::mm", 810, 890, ID_NONE, -1);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_int_equal(l->source, LAYERS_RANGES);
	assert_int_equal(l->n, 2);
	assert_int_equal(l->v[1].parent, 0);
	assert_span(l, p, "aten::bmm", "encoder:attention");
	assert_gpu(l, p, "inner", "encoder:attention");
	assert_gpu(l, p, "outer", "encoder");
	assert_gpu(l, p, "no name", "");
	assert_span(l, p, "aten::mm", "");
	assert_int_equal(l->is_call[builder_span_named(p, "layer:encoder")], 1);
	assert_int_equal(l->is_call[builder_span_named(p, "layer:")], 0);
	layers_free(l);
	profile_free(p);
}

/* Backward work is of the layer of its forward op, AccumulateGrad of the backward op before it, the optimizer's of none. */
static void test_backward(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1"), engine = builder_track(&b, "1", "2");
	builder_span(&b, t, SPAN_USER, "layer:a", 0, 100);
	builder_op(&b, t, "aten::mm", 10, 90, 7, 0);
	builder_span(&b, t, SPAN_USER, "layer:b", 100, 200);
	builder_op(&b, t, "aten::add", 110, 190, 8, 0);
	builder_op(&b, engine, "AddBackward0", 300, 400, 8, 1);
	builder_op(&b, engine, "MmBackward0", 400, 500, 7, 1);
	builder_op(&b, engine, "aten::t", 410, 490, ID_NONE, -1);
	builder_launch(&b, engine, 420, 430, 0, "gemm", 2000, 2010);
	builder_op(&b, engine, "torch::autograd::AccumulateGrad", 500, 550, ID_NONE, -1);
	builder_launch(&b, engine, 510, 520, 0, "accumulate", 2020, 2030);
	builder_op(&b, engine, "MulBackward0", 600, 700, 99, 1); /* its forward op was not recorded */
	builder_launch(&b, engine, 610, 620, 0, "mul", 2040, 2050);
	builder_span(&b, t, SPAN_USER, "layer:c", 800, 1000);
	builder_span(&b, t, SPAN_USER, "Optimizer.step#SGD.step", 810, 990);
	builder_launch(&b, t, 820, 830, 0, "sgd", 2060, 2070);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_span(l, p, "AddBackward0", "b");
	assert_span(l, p, "MmBackward0", "a");
	assert_span(l, p, "aten::t", "a");
	assert_gpu(l, p, "gemm", "a");
	assert_gpu(l, p, "accumulate", "a");
	assert_gpu(l, p, "mul", "");
	assert_gpu(l, p, "sgd", "");
	layers_free(l);
	profile_free(p);
}

/* Activation checkpointing runs the layers again within the backward pass: its own ranges go first. */
static void test_recomputation(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1"), engine = builder_track(&b, "1", "2");
	builder_span(&b, t, SPAN_USER, "layer:a", 0, 100);
	builder_op(&b, t, "aten::mm", 10, 90, 7, 0);
	builder_op(&b, engine, "autograd::engine::evaluate_function: CheckpointFunctionBackward", 300, 900, ID_NONE, -1);
	builder_span(&b, engine, SPAN_USER, "layer:b", 400, 500);
	builder_op(&b, engine, "aten::relu", 405, 495, ID_NONE, -1);
	builder_launch(&b, engine, 410, 420, 0, "again", 2000, 2010);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_gpu(l, p, "again", "b");
	layers_free(l);
	profile_free(p);
}

static void test_modules(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	builder_span(&b, t, SPAN_PYTHON, "nn.Module: Net_0", 0, 500);
	builder_span(&b, t, SPAN_PYTHON, "nn.Module: Linear_12", 100, 400);
	builder_op(&b, t, "aten::linear", 110, 390, ID_NONE, -1);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_int_equal(l->source, LAYERS_MODULES);
	assert_span(l, p, "aten::linear", "Net_0/Linear_12");
	assert_string_equal(type_of(l, "Net_0/Linear_12"), "Linear");
	layers_free(l);
	profile_free(p);
	builder_begin(&b);
	t = builder_track(&b, "1", "1");
	builder_span(&b, t, SPAN_USER, "[pl][module]torch.nn.modules.linear.Linear: net.0.head", 0, 500);
	builder_op(&b, t, "aten::linear", 110, 390, ID_NONE, -1);
	p = finish(&b);
	l = made(p);
	assert_span(l, p, "aten::linear", "net.0.head");
	assert_string_equal(type_of(l, "net.0.head"), "Linear");
	layers_free(l);
	profile_free(p);
}

static void marker(struct builder *b, uint32_t t, int64_t start, int64_t end, const char *const *args)
{
	struct span_row r = builder_span_row(b, t, SPAN_MARKER, "marker", start, end);
	r.args = builder_text_args(b, args);
	build_span(&b->b, &r);
}

/* What the module prints of itself; where that is only its arguments, its class around them; where it is nothing, its class. */
static void test_markers(void **state)
{
	static const struct { const char *module, *repr, *want; } v[] = {
		{"torch.nn.modules.linear.Linear", "Linear(in_features=4, bias=False)", "Linear(in_features=4, bias=False)"},
		{"torch.nn.modules.rnn.LSTM", "64, 128", "LSTM(64, 128)"},
		{"Identity", "", "Identity"},
		{"my.Lin", "Linear(4)", "Lin(Linear(4))"},
	};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct builder b;
		builder_begin(&b);
		uint32_t t = builder_track(&b, "1", "1");
		marker(&b, t, 0, 500, (const char *const[]){"Module", v[i].module, "strRepr", v[i].repr, NULL});
		builder_op(&b, t, "op", 10, 20, ID_NONE, -1);
		struct profile *p = finish(&b);
		struct layers *l = made(p);
		assert_int_equal(l->source, LAYERS_MARKERS);
		assert_span(l, p, "op", v[i].want);
		layers_free(l);
		profile_free(p);
	}
}

static void test_function_stacks(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	marker(&b, t, 0, 500, (const char *const[]){"funcStack", "/<module>/Net::_call_impl/Net::forward/Linear::_call_impl(2)/linear", NULL});
	builder_op(&b, t, "op", 10, 20, ID_NONE, -1);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_int_equal(l->source, LAYERS_STACKS);
	assert_span(l, p, "op", "Net/Linear(2)");
	assert_string_equal(type_of(l, "Net/Linear(2)"), "Linear");
	layers_free(l);
	profile_free(p);
}

/* Ranges nested deeper than 64 count for the 64th; the path stays short. */
static void test_depth(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	for (int i = 0; i < 200; i++)
		builder_span(&b, t, SPAN_USER, "layer:x", i, 1000 - i);
	builder_op(&b, t, "op", 400, 500, ID_NONE, -1);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_int_equal(l->n, 64);
	assert_int_equal(l->of_span[builder_span_named(p, "op")], 63);
	assert_int_equal(layer_name(l, 63).n, 2 * 64 - 1);
	layers_free(l);
	profile_free(p);
}

static void test_none(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	builder_op(&b, t, "aten::mm", 0, 10, ID_NONE, -1);
	builder_gpu(&b, 0, GPU_KERNEL, "of no call", 20, 30);
	struct profile *p = finish(&b);
	struct layers *l = made(p);
	assert_int_equal(l->source, LAYERS_NONE);
	assert_int_equal(l->n, 0);
	assert_span(l, p, "aten::mm", "");
	assert_gpu(l, p, "of no call", "");
	layers_free(l);
	profile_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges), cmocka_unit_test(test_backward), cmocka_unit_test(test_recomputation), cmocka_unit_test(test_modules),
		cmocka_unit_test(test_markers), cmocka_unit_test(test_function_stacks), cmocka_unit_test(test_depth), cmocka_unit_test(test_none),
	};
	return RUN_TESTS(tests);
}
