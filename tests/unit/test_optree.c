/* The op tree: whose each moment of the host and each piece of device work is (analysis/tree/optree.h). */
#include "profile_builder.h"

#include "analysis/tree/optree.h"

static const char tc_name[] = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", simt_name[] = "volta_sgemm_128x64_nn", unknown_name[] = "my_own_thing";

static uint32_t node(const struct profile *p, const struct optree *t, const char *name)
{
	return t->node_of_span[builder_span_named(p, name)];
}

static void test_names(void **state)
{
	static const struct { const char *name; enum span_kind kind; enum optree_kind want; } v[] = {
		{"aten::mm", SPAN_OP, NODE_OP},
		{"ProfilerStep#3", SPAN_USER, NODE_STEP},
		{"ProfilerStep#3", SPAN_OP, NODE_STEP},
		{"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", SPAN_USER, NODE_DATALOADER},
		{"enumerate(DataLoader)#_SingleProcessDataLoaderIter", SPAN_OP, NODE_OP},
		{"enumerate(DataPipe)#MapperIterDataPipe", SPAN_USER, NODE_DATALOADER},
		{"Optimizer.step#SGD.step", SPAN_USER, NODE_OPTIMIZER},
		{"Optimizer.zero_grad#SGD.zero_grad", SPAN_OP, NODE_EXCLUDED_OP},
		{"DataParallel.forward", SPAN_OP, NODE_EXCLUDED_OP},
		{"DistributedDataParallel.forward", SPAN_OP, NODE_EXCLUDED_OP},
		{"DistributedDataParallel.forward", SPAN_USER, NODE_USER},
		{"nccl:all_reduce", SPAN_USER, NODE_COMM},
		{"my range", SPAN_USER, NODE_USER},
	};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
		if (optree_classify(str_from(v[i].name), v[i].kind) != v[i].want)
			fail_msg("%s: %d, not %d", v[i].name, optree_classify(str_from(v[i].name), v[i].kind), v[i].want);
}

/* A parent with an op, a call and a driver call within that call: each moment is one's. */
static void test_times(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_OP, "outer", 0, 100);
	builder_span(&m, t, SPAN_OP, "inner", 10, 40);
	builder_launch(&m, t, 20, 25, 0, tc_name, 200, 203);
	builder_launch(&m, t, 50, 70, 0, simt_name, 210, 220);
	builder_call(&m, t, "cuLaunchKernel", 55, 65, ID_NONE);
	builder_launch(&m, t, 80, 90, 0, unknown_name, 300, 400);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &optree_own);
	assert_int_equal(o->n, 2);
	uint32_t outer = node(p, o, "outer"), inner = node(p, o, "inner");
	assert_int_equal(o->parent[outer], ROW_NONE);
	assert_int_equal(o->parent[inner], outer);
	assert_int_equal(optree_host_total(o, p, outer), 100);
	assert_int_equal(o->host_self[outer], 100 - 30 - 20 - 10); /* the driver call is inside the other: not twice */
	assert_int_equal(o->host_self[inner], 30 - 5);
	assert_int_equal(o->dev_self[outer], 10 + 100);
	assert_int_equal(o->dev_total[outer], 10 + 100 + 3);
	assert_int_equal(o->dev_self[inner], 3);
	assert_int_equal(optree_sum(o->tc_self, outer), 0);
	assert_int_equal(optree_sum(o->tc_total, outer), 3);
	assert_int_equal(optree_sum(o->tc_unknown_self, outer), 100);
	assert_true(o->tc_eligible[inner] && o->tc_eligible[outer]); /* it launched such a kernel; its child can use them */
	assert_int_equal(o->unattributed_ns, 0);
	optree_free(o);
	profile_free(p);
}

/* A call that ends behind its op takes no more of the op's time than there is. */
static void test_own_time_is_never_negative(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	struct span_row op = builder_span_row(&m, t, SPAN_OP, "op", 0, 10), call = builder_span_row(&m, t, SPAN_CALL, "cudaDeviceSynchronize", 5, 50);
	op.ext_id = call.ext_id = 7;
	build_span(&m.b, &op);
	build_span(&m.b, &call);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &optree_own);
	assert_int_equal(o->host_self[0], 5);
	optree_free(o);
	profile_free(p);
}

/* The same op dispatched again inside itself is one; two of them are two. */
static void test_folding(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_op(&m, t, "aten::add", 0, 100, ID_NONE, -1);
	builder_op(&m, t, "aten::add", 10, 90, ID_NONE, -1);
	builder_op(&m, t, "aten::mul", 200, 300, ID_NONE, -1);
	builder_op(&m, t, "aten::mul", 210, 220, ID_NONE, -1);
	builder_op(&m, t, "aten::mul", 230, 240, ID_NONE, -1);
	builder_launch(&m, t, 2, 5, 0, "of the outer add", 400, 410);
	builder_launch(&m, t, 20, 25, 0, "of the inner add", 410, 430);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &optree_own);
	assert_int_equal(o->n, 4);
	assert_int_equal(o->folded, 1);
	assert_int_equal(o->node_of_span[0], 0);
	assert_int_equal(o->host_self[0], 100 - 3 - 5);
	assert_int_equal(o->dev_self[0], 30); /* the calls of both */
	assert_int_equal(o->gpu_node[0], 0);
	assert_int_equal(o->gpu_node[1], 0);
	assert_int_equal(o->host_self[1], 100 - 20);
	optree_free(o);
	profile_free(p);
}

/* A call with the external id of an op is that op's, wherever it is made; the moment is of no other op. */
static void test_external_ids(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t one = builder_track(&m, "1", "1"), two = builder_track(&m, "1", "2");
	struct span_row asks = builder_span_row(&m, one, SPAN_OP, "asks", 0, 100);
	struct span_row call = builder_span_row(&m, two, SPAN_CALL, "cudaLaunchKernel", 20, 30);
	struct gpu_row work = builder_gpu_row(&m, 0, GPU_KERNEL, "work", 200, 250);
	asks.ext_id = call.ext_id = 9;
	call.link_id = work.corr_id = 1;
	build_span(&m.b, &asks);
	build_span(&m.b, &call);
	build_gpu(&m.b, &work);
	builder_span(&m, two, SPAN_OP, "around", 0, 100);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &optree_own);
	assert_int_equal(o->dev_self[node(p, o, "asks")], 50);
	assert_int_equal(o->dev_self[node(p, o, "around")], 0);
	assert_int_equal(o->host_self[node(p, o, "around")], 90);
	assert_int_equal(o->gpu_node[0], node(p, o, "asks"));
	optree_free(o);
	profile_free(p);
}

/* Work is of the op around the launch, also through an annotation; where there is no op, of the annotation; else of none. */
static void test_annotations(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_OP, "op", 0, 100);
	builder_span(&m, t, SPAN_USER, "in the op", 10, 50);
	builder_launch(&m, t, 20, 30, 0, "through a range", 200, 201);
	builder_span(&m, t, SPAN_USER, "alone", 110, 150);
	builder_launch(&m, t, 120, 130, 0, "of a range", 210, 212);
	builder_span(&m, t, SPAN_USER, "Optimizer.step#SGD.step", 160, 180);
	builder_launch(&m, t, 165, 170, 0, "of the optimizer", 220, 224);
	builder_launch(&m, t, 190, 195, 0, "of nothing", 230, 238);
	builder_gpu(&m, 0, GPU_KERNEL, "of no call", 240, 256);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &optree_own);
	static const struct { const char *work, *node, *operator; } want[] = {
		{"through a range", "op", "op"}, {"of a range", "alone", ""}, {"of the optimizer", "Optimizer.step#SGD.step", "Optimizer.step#SGD.step"},
		{"of nothing", NULL, ""}, {"of no call", NULL, ""},
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		uint32_t g = builder_gpu_named(p, want[i].work);
		assert_int_equal(o->gpu_node[g], want[i].node ? node(p, o, want[i].node) : ROW_NONE);
		assert_str_equal(profile_str(p, optree_operator(o, p, g)), want[i].operator);
	}
	assert_int_equal(o->dev_self[node(p, o, "in the op")], 0);
	assert_int_equal(o->unattributed_ns, 8 + 16);
	assert_int_equal(o->unattributed_ops, 2);
	optree_free(o);
	profile_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_times), cmocka_unit_test(test_own_time_is_never_negative), cmocka_unit_test(test_folding),
		cmocka_unit_test(test_external_ids), cmocka_unit_test(test_annotations),
	};
	return RUN_TESTS(tests);
}
