/* Time per nn.Module: which module a call, an op, device work and their backward count for (analysis/tree/modules.h). */
#include "profile_builder.h"

#include "analysis/tree/modules.h"

static struct profile *finish(struct builder *m)
{
	return builder_finish(m, PASS_NEST | PASS_CORRELATE);
}

static const struct module_node *module(const struct modules *m, const char *name)
{
	const struct module_node *found = NULL;
	for (uint32_t k = 0; k < m->tree.n_order; k++)
		if (str_eqc(intern_get(&m->tree.names, m->tree.v[m->tree.order[k]].name), name)) {
			if (found)
				fail_msg("several modules %s", name);
			found = &m->tree.v[m->tree.order[k]];
		}
	if (!found)
		fail_msg("no module %s", name);
	return found;
}

static void assert_parent(const struct modules *m, const char *child, const char *parent)
{
	uint32_t up = module(m, child)->parent;
	assert_str_equal(up == MODULE_NONE ? STR("") : intern_get(&m->tree.names, m->tree.v[up].name), parent);
}

/* All device work is in exactly one sum. */
static void assert_device(const struct modules *m, int64_t forward, int64_t backward, int64_t comm, int64_t optimizer, int64_t outside, int64_t unattributed)
{
	assert_int_equal(m->dev_forward, forward);
	assert_int_equal(m->dev_backward, backward);
	assert_int_equal(m->dev_gradient_comm, comm);
	assert_int_equal(m->dev_optimizer, optimizer);
	assert_int_equal(m->dev_outside, outside);
	assert_int_equal(m->dev_unattributed, unattributed);
}

/* Net calls Linear twice and ReLU once; an op stands in each, and one in Net itself. */
static void forward_pass(struct builder *m, uint32_t t)
{
	builder_span(m, t, SPAN_PYTHON, "nn.Module: Net_0", 0, 1000);
	builder_op(m, t, "aten::mul", 20, 60, 1, 0);
	builder_launch(m, t, 30, 40, 0, "mul", 2000, 2001);
	for (int i = 0; i < 2; i++) {
		builder_span(m, t, SPAN_PYTHON, "nn.Module: Linear_0", 100 + 200 * i, 200 + 200 * i);
		builder_op(m, t, i ? "aten::linear" : "aten::addmm", 120 + 200 * i, 180 + 200 * i, 2 + i, 0);
		builder_launch(m, t, 130 + 200 * i, 140 + 200 * i, 0, "gemm", 2010 + 20 * i, 2020 + 20 * i);
	}
	builder_span(m, t, SPAN_PYTHON, "nn.Module: ReLU_0", 600, 700);
	builder_op(m, t, "aten::relu", 610, 690, 4, 0);
	builder_launch(m, t, 620, 630, 0, "relu", 2100, 2104);
}

static void test_forward(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	forward_pass(&b, t);
	builder_op(&b, t, "aten::sum", 1100, 1150, 5, 0);
	builder_launch(&b, t, 1110, 1120, 0, "sum", 2200, 2232);
	builder_gpu(&b, 0, GPU_KERNEL, "of no call", 2300, 2364);
	struct profile *p = finish(&b);
	struct modules *m = modules_new(p, &modules_own, NULL);
	assert_int_equal(m->source, MODULES_PYTHON);
	assert_int_equal(m->tree.n_order, 3);
	assert_parent(m, "Net_0", "");
	assert_parent(m, "Linear_0", "Net_0");
	assert_parent(m, "ReLU_0", "Net_0");
	const struct module_node *net = module(m, "Net_0"), *linear = module(m, "Linear_0");
	assert_true(net->calls == 1 && linear->calls == 2);
	assert_true(net->operators == 1 && linear->operators == 2);
	assert_int_equal(net->host_total, 1000);
	assert_int_equal(net->host_self, 1000 - 40 - 100 - 100 - 100); /* without what is directly in it: the op, and three calls of modules */
	assert_int_equal(linear->host_total, 200);
	assert_int_equal(linear->host_self, 200 - 60 - 60);
	assert_int_equal(net->dev_self, 1);
	assert_int_equal(linear->dev_self, 20);
	assert_int_equal(net->dev_total, 1 + 20 + 4);
	assert_device(m, 25, 0, 0, 0, 32, 64);
	assert_int_equal(m->phase[builder_span_named(p, "aten::relu")], PHASE_FORWARD);
	assert_int_equal(m->phase[builder_span_named(p, "aten::sum")], PHASE_OUTSIDE);
	assert_int_equal(m->is_module[builder_span_named(p, "nn.Module: ReLU_0")], 1);
	assert_int_equal(m->is_module[builder_span_named(p, "aten::relu")], 0);
	modules_free(m);
	profile_free(p);
}

/* A backward op is of the module of its forward op; AccumulateGrad of the one before it, but what it sends for a bucket of gradients of none. */
static void test_backward(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1"), engine = builder_track(&b, "1", "2");
	forward_pass(&b, t);
	builder_op(&b, engine, "ReluBackward0", 1100, 1200, 4, 1);
	builder_launch(&b, engine, 1110, 1120, 0, "threshold", 2200, 2201);
	builder_op(&b, engine, "AddmmBackward0", 1300, 1400, 3, 1);
	builder_launch(&b, engine, 1310, 1320, 0, "gemm backward", 2210, 2212);
	builder_op(&b, engine, "torch::autograd::AccumulateGrad", 1500, 1600, ID_NONE, -1);
	builder_launch(&b, engine, 1510, 1520, 0, "add", 2220, 2224);
	builder_launch(&b, engine, 1550, 1560, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2230, 2238);
	builder_op(&b, engine, "autograd::engine::evaluate_function: Unknown", 1700, 1800, ID_NONE, -1);
	builder_launch(&b, engine, 1710, 1720, 0, "unknown", 2240, 2256);
	builder_span(&b, t, SPAN_USER, "Optimizer.step#SGD.step", 1900, 1990);
	builder_launch(&b, t, 1910, 1920, 0, "multi_tensor_apply", 2260, 2292);
	struct profile *p = finish(&b);
	struct modules *m = modules_new(p, &modules_own, NULL);
	const struct module_node *linear = module(m, "Linear_0"), *relu = module(m, "ReLU_0"), *net = module(m, "Net_0");
	assert_int_equal(relu->bwd_dev_self, 1);
	assert_int_equal(relu->bwd_host_self, 100);
	assert_int_equal(linear->bwd_dev_self, 2 + 4);
	assert_int_equal(linear->bwd_host_self, 100 + 100);
	assert_int_equal(linear->dev_self, 20);
	assert_true(net->bwd_dev_self == 0 && net->bwd_dev_total == 7);
	assert_device(m, 25, 7, 8, 32, 16, 0);
	assert_int_equal(m->dev_backward_unlinked, 16);
	assert_int_equal(m->accumulated, 1);
	assert_int_equal(m->phase[builder_span_named(p, "AddmmBackward0")], PHASE_BACKWARD);
	assert_int_equal(m->phase[builder_span_named(p, "torch::autograd::AccumulateGrad")], PHASE_ACCUMULATE);
	assert_int_equal(m->phase[builder_span_named(p, "Optimizer.step#SGD.step")], PHASE_OPTIMIZER);
	modules_free(m);
	profile_free(p);
}

/* A call of a module within a backward op is recomputation: no call more, its work is the backward pass's, at the module's one place. */
static void test_recomputation(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1"), engine = builder_track(&b, "1", "2");
	forward_pass(&b, t);
	builder_op(&b, engine, "autograd::engine::evaluate_function: CheckpointFunctionBackward", 1100, 1500, ID_NONE, -1);
	builder_span(&b, engine, SPAN_PYTHON, "nn.Module: Linear_0", 1200, 1300);
	builder_op(&b, engine, "aten::linear", 1210, 1290, ID_NONE, -1);
	builder_launch(&b, engine, 1220, 1230, 0, "again", 2500, 2516);
	struct profile *p = finish(&b);
	struct modules *m = modules_new(p, &modules_own, NULL);
	const struct module_node *linear = module(m, "Linear_0");
	assert_int_equal(linear->calls, 2);
	assert_int_equal(linear->recompute_calls, 1);
	assert_int_equal(m->joined, 1);
	assert_int_equal(linear->host_total, 200);
	assert_int_equal(linear->bwd_dev_self, 16);
	assert_int_equal(linear->recompute_dev_self, 16);
	assert_device(m, 25, 16, 0, 0, 0, 0);
	modules_free(m);
	profile_free(p);
}

/* annotated, then Lightning, then Python, then TorchScript. */
static void test_sources(void **state)
{
	static const enum module_source want[] = {MODULES_ANNOTATED, MODULES_LIGHTNING, MODULES_PYTHON, MODULES_TORCHSCRIPT, MODULES_NONE};
	for (int from = 0; from < 5; from++) {
		struct builder b;
		builder_begin(&b);
		uint32_t t = builder_track(&b, "1", "1");
		if (from <= 0)
			builder_span(&b, t, SPAN_USER, "[module]Linear: net.head", 0, 1000);
		if (from <= 1)
			builder_span(&b, t, SPAN_USER, "[pl][module]Linear: net.head", 10, 990);
		if (from <= 2)
			builder_span(&b, t, SPAN_PYTHON, "nn.Module: Net_0", 20, 980);
		struct span_row op = builder_span_row(&b, t, SPAN_OP, "aten::linear", 30, 970);
		if (from <= 3)
			op.args = builder_text_args(&b, (const char *const[]){"Module Hierarchy", "TOP(Net)::forward.head(Linear)::forward.SELF(Linear)::_f", NULL});
		build_span(&b.b, &op);
		struct profile *p = finish(&b);
		struct modules *m = modules_new(p, &modules_own, NULL);
		assert_int_equal(m->source, want[from]);
		if (from <= 1) { /* the dots are the hierarchy */
			assert_parent(m, "head", "net");
			assert_str_equal(intern_get(&m->tree.names, module(m, "head")->type), "Linear");
			assert_true(module(m, "head")->calls == 1 && module(m, "net")->calls == 0);
		}
		if (from == 3) {
			assert_parent(m, "head(Linear)", "TOP(Net)");
			assert_int_equal(module(m, "head(Linear)")->host_total, 940);
			assert_int_equal(m->tree.n_order, 2);
		}
		modules_free(m);
		profile_free(p);
	}
}

/* Frames under another thread id than the ops: their thread lends them to the one thread whose ops lie in them; to none, where two do. */
static void test_lent_frames(void **state)
{
	for (int threads = 1; threads <= 2; threads++) {
		struct builder b;
		builder_begin(&b);
		uint32_t frames = builder_track(&b, "1", "9");
		builder_span(&b, frames, SPAN_PYTHON, "nn.Module: Net_0", 0, 1000);
		for (int i = 0; i < threads; i++) {
			uint32_t t = builder_track(&b, "1", i ? "2" : "1");
			builder_op(&b, t, "aten::mm", 100, 200, ID_NONE, -1);
			builder_launch(&b, t, 110, 120, 0, "gemm", 2000, 2010);
		}
		struct profile *p = finish(&b);
		struct modules *m = modules_new(p, &modules_own, NULL);
		assert_int_equal(m->lent_tracks, threads == 1);
		assert_int_equal(m->unlent_tracks, threads == 2);
		assert_int_equal(m->dev_forward, threads == 1 ? 10 : 0);
		assert_int_equal(m->dev_outside, threads == 1 ? 0 : 20);
		modules_free(m);
		profile_free(p);
	}
}

/* Only what begins in the window counts. */
static void test_window(void **state)
{
	struct builder b;
	builder_begin(&b);
	uint32_t t = builder_track(&b, "1", "1");
	forward_pass(&b, t);
	builder_gpu(&b, 0, GPU_KERNEL, "of no call", 2300, 2364);
	struct profile *p = finish(&b);
	struct step_window w = {.start_ns = 300, .end_ns = 600};
	struct modules *m = modules_new(p, &modules_own, &w);
	assert_int_equal(module(m, "Linear_0")->calls, 1);
	assert_int_equal(module(m, "Linear_0")->host_total, 100);
	assert_int_equal(module(m, "Linear_0")->dev_self, 10);
	assert_device(m, 10, 0, 0, 0, 0, 0);
	modules_free(m);
	profile_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward), cmocka_unit_test(test_backward), cmocka_unit_test(test_recomputation), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_lent_frames), cmocka_unit_test(test_window),
	};
	return RUN_TESTS(tests);
}
