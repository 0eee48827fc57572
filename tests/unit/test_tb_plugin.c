/* The rules of the TensorBoard plugin, where they differ from opscope's own. */
#include "role_steps.h"

#include "predecessors/tb_plugin/rules.h"

/* --- op tree ------------------------------------------------------------------------------------------------------ */

static uint32_t node(const struct profile *p, const struct optree *t, const char *name)
{
	return t->node_of_span[builder_span_named(p, name)];
}

/* Calls without an external id are no op's. */
static void test_calls_without_an_id(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_OP, "outer", 0, 100);
	builder_span(&m, t, SPAN_OP, "inner", 10, 40);
	builder_launch(&m, t, 20, 25, 0, "gemm", 200, 203);
	builder_launch(&m, t, 50, 70, 0, "gemm", 210, 220);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &tb_optree);
	assert_int_equal(o->host_self[node(p, o, "outer")], 100 - 30);
	assert_int_equal(o->unattributed_ns, 13);
	optree_free(o);
	profile_free(p);
}

/* The calls of an op that is folded are lost. */
static void test_folding(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	for (int i = 0; i < 2; i++) {
		struct span_row op = builder_span_row(&m, t, SPAN_OP, "aten::add", 10 * i, 100 - 10 * i);
		struct span_row call = builder_span_row(&m, t, SPAN_CALL, "cudaLaunchKernel", 2 + 18 * i, 5 + 18 * i);
		struct gpu_row work = builder_gpu_row(&m, 0, GPU_KERNEL, i ? "inner" : "outer", 400 + 10 * i, 410 + 20 * i);
		op.ext_id = call.ext_id = 5 + i;
		work.corr_id = call.link_id = 100 + i;
		build_span(&m.b, &op);
		build_span(&m.b, &call);
		build_gpu(&m.b, &work);
	}
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *o = optree_new(p, &tb_optree);
	uint32_t outer = builder_gpu_named(p, "outer"), inner = builder_gpu_named(p, "inner");
	assert_int_equal(o->n, 1);
	assert_int_equal(o->host_self[0], 100 - 3);
	assert_int_equal(o->dev_self[0], 20);
	assert_int_equal(o->gpu_lost[outer], 1);
	assert_int_equal(o->gpu_lost[inner], 0);
	assert_int_equal(o->gpu_node[inner], 0);
	optree_free(o);
	profile_free(p);
}

/* Ranges of the user are no nodes; what crosses the end of another is dropped. */
static void test_nodes(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	builder_span(&m, t, SPAN_USER, "my range", 0, 100);
	builder_span(&m, t, SPAN_USER, "nccl:all_reduce", 5, 95);
	builder_span(&m, t, SPAN_OP, "first", 10, 50);
	builder_span(&m, t, SPAN_OP, "crosses", 40, 60);
	struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
	struct optree *plugin = optree_new(p, &tb_optree), *own = optree_new(p, &optree_own);
	assert_int_equal(plugin->n, 2);
	assert_int_equal(node(p, plugin, "my range"), ROW_NONE);
	assert_int_equal(node(p, plugin, "crosses"), ROW_NONE);
	assert_int_equal(plugin->parent[node(p, plugin, "first")], node(p, plugin, "nccl:all_reduce"));
	assert_int_equal(own->n, 4);
	assert_int_equal(own->kind[node(p, own, "nccl:all_reduce")], NODE_COMM);
	optree_free(plugin);
	optree_free(own);
	profile_free(p);
}

/* --- roles -------------------------------------------------------------------------------------------------------- */

static struct roles *roles_of(struct profile *p)
{
	return roles_new(p, tb_steps_of(p, &p->arena), &tb_roles, NULL, NULL);
}

/* A copy goes before what is set and communicated, and a kernel is communication only by an op's external id. */
static void test_order(void **state)
{
	struct profile *p = staircase();
	struct roles *r = roles_of(p);
	assert_costs(&r->cost[0], (int64_t[ROLES]){[ROLE_KERNEL] = 22, [ROLE_MEMCPY] = 16, [ROLE_MEMSET] = 2, [ROLE_RUNTIME] = 10, [ROLE_DATALOADER] = 15,
	                                           [ROLE_CPU] = 15, [ROLE_OTHER] = 20});
	assert_false(r->shown[ROLE_COMM]);
	roles_free(r);
	profile_free(p);
}

/* The work of all GPUs is one union. */
static void test_gpus(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	step(&m, t, 1, 0, 100);
	builder_gpu(&m, 0, GPU_KERNEL, "gemm", 0, 51);
	builder_gpu(&m, 1, GPU_KERNEL, "gemm", 20, 40);
	builder_gpu(&m, 1, GPU_MEMCPY, "Memcpy DtoD (Device -> Device)", 40, 60);
	builder_span(&m, t, SPAN_OP, "aten::add", 0, 30);
	struct profile *p = finish(&m);
	struct roles *r = roles_of(p);
	assert_int_equal(r->gpus, 0);
	assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_KERNEL] = 51, [ROLE_MEMCPY] = 9, [ROLE_OTHER] = 40});
	roles_free(r);
	profile_free(p);
}

/* Once the whole step has a role, it is shared out again: its parts are more than the step. */
static void test_twice(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	step(&m, t, 1, 0, 100);
	builder_gpu(&m, 0, GPU_KERNEL, "gemm", 0, 100);
	builder_call(&m, t, "cudaDeviceSynchronize", 10, 30, ID_NONE);
	builder_span(&m, t, SPAN_OP, "aten::add", 0, 100);
	struct profile *p = finish(&m);
	struct roles *r = roles_of(p);
	int64_t sum = 0;
	for (int i = 0; i < ROLES; i++)
		sum += r->sum.ns[i];
	assert_int_equal(sum, 200);
	roles_free(r);
	r = roles_new(p, p->steps, &roles_own, NULL, NULL);
	assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_KERNEL] = 100});
	roles_free(r);
	profile_free(p);
}

/* Calls of the driver are not known. */
static void test_driver_calls(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	step(&m, t, 1, 0, 100);
	struct span_row r = builder_span_row(&m, t, SPAN_CALL, "cuLaunchKernel", 10, 30);
	r.cat = build_cat(&m.b, builder_text(&m, "cuda_driver"));
	build_span(&m.b, &r);
	struct profile *p = finish(&m);
	struct roles *plugin = roles_of(p);
	assert_costs(&plugin->sum, (int64_t[ROLES]){[ROLE_OTHER] = 100});
	assert_false(plugin->has_device);
	assert_false(plugin->shown[ROLE_KERNEL]);
	assert_true(plugin->shown[ROLE_CPU]);
	roles_free(plugin);
	profile_free(p);
}

/* --- rows of reports ---------------------------------------------------------------------------------------------- */

static void assert_refused(const char *report, const char *group_by, const char *why)
{
	struct err e;
	assert_null(report_variant_of(report_find(str_from(report)), &(struct report_args){.compat = "tb-plugin", .group_by = group_by}, &e));
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, why);
}

static void test_rows(void **state)
{
	const struct report *kernels = report_find(STR("kernels")), *operators = report_find(STR("operators"));
	assert_string_equal(report_variant_of(operators, &(struct report_args){.compat = "tb-plugin"}, NULL)->group_by, "name");
	assert_string_equal(report_compat(kernels, 0), "tb-plugin");
	assert_refused("kernels", "instance", "report kernels: --compat=tb-plugin has no --group-by=instance; it has: name, op, launch");
	assert_refused("overview", "name", "report overview: --compat=tb-plugin has no --group-by=name");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_without_an_id), cmocka_unit_test(test_folding), cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_order), cmocka_unit_test(test_gpus), cmocka_unit_test(test_twice), cmocka_unit_test(test_driver_calls),
		cmocka_unit_test(test_rows),
	};
	return RUN_TESTS(tests);
}
