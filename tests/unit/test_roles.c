/* Step time by role: every moment of a step has one, and the parts add up (analysis/steps/roles.h). */
#include "role_steps.h"

static void test_order(void **state)
{
	struct profile *p = staircase();
	struct roles *r = roles_new(p, p->steps, &roles_own, NULL, NULL);
	assert_int_equal(r->n, 1);
	assert_costs(&r->cost[0], (int64_t[ROLES]){[ROLE_KERNEL] = 10, [ROLE_MEMSET] = 8, [ROLE_COMM] = 10, [ROLE_MEMCPY] = 12, [ROLE_RUNTIME] = 10,
	                                           [ROLE_DATALOADER] = 15, [ROLE_CPU] = 15, [ROLE_OTHER] = 20});
	assert_true(roles_mean_ns(r, ROLE_MEMCPY) == 12 && roles_mean_step_ns(r) == 100 && roles_share_pct(r, ROLE_CPU) == 15);
	for (int i = 0; i < ROLES; i++)
		assert_true(r->shown[i]);
	roles_free(r);
	profile_free(p);
}

/* What lies outside the steps is in none; a step's parts are its own. */
static void test_several_steps(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	step(&m, t, 1, 100, 200);
	step(&m, t, 2, 200, 260);
	step(&m, t, 3, 300, 400);
	builder_gpu(&m, 0, GPU_KERNEL, "gemm", 50, 120);
	builder_gpu(&m, 0, GPU_KERNEL, "gemm", 190, 210);
	builder_span(&m, t, SPAN_OP, "aten::add", 250, 320);
	struct profile *p = finish(&m);
	struct roles *r = roles_new(p, p->steps, &roles_own, NULL, NULL);
	assert_int_equal(r->n, 3);
	assert_costs(&r->cost[0], (int64_t[ROLES]){[ROLE_KERNEL] = 30, [ROLE_OTHER] = 70});
	assert_costs(&r->cost[1], (int64_t[ROLES]){[ROLE_KERNEL] = 10, [ROLE_CPU] = 10, [ROLE_OTHER] = 40});
	assert_costs(&r->cost[2], (int64_t[ROLES]){[ROLE_CPU] = 20, [ROLE_OTHER] = 80});
	assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_KERNEL] = 40, [ROLE_CPU] = 30, [ROLE_OTHER] = 190});
	roles_free(r);
	int64_t first = 2, last = 3;
	r = roles_new(p, p->steps, &roles_own, &first, &last);
	assert_int_equal(r->n, 2);
	assert_int_equal(r->step[0]->number, 2);
	assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_KERNEL] = 10, [ROLE_CPU] = 30, [ROLE_OTHER] = 120});
	assert_int_equal(r->edges, 0);
	roles_free(r);
	profile_free(p);
}

/* Each GPU by itself: the work of one does not hide the idle time of another. What division leaves over is in some part. */
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
	struct roles *r = roles_new(p, p->steps, &roles_own, NULL, NULL);
	assert_int_equal(r->gpus, 2);
	assert_int_equal(r->gpu[1].device, 1);
	assert_costs(&r->gpu[0].sum, (int64_t[ROLES]){[ROLE_KERNEL] = 51, [ROLE_OTHER] = 49});
	assert_costs(&r->gpu[1].sum, (int64_t[ROLES]){[ROLE_KERNEL] = 20, [ROLE_MEMCPY] = 20, [ROLE_CPU] = 20, [ROLE_OTHER] = 40});
	assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_KERNEL] = 36, [ROLE_MEMCPY] = 10, [ROLE_CPU] = 10, [ROLE_OTHER] = 44});
	roles_free(r);
	profile_free(p);
}

/* Where a GPU runs the collective, its range on the host only enqueues it; gloo's and MPI's run on the host. */
static void test_collectives_on_the_host(void **state)
{
	for (int device = 0; device < 2; device++) {
		struct builder m;
		builder_begin(&m);
		uint32_t t = builder_track(&m, "1", "1");
		step(&m, t, 1, 0, 100);
		builder_span(&m, t, SPAN_USER, "nccl:all_reduce", 0, 20);
		builder_span(&m, t, SPAN_USER, "gloo:all_reduce", 20, 50);
		builder_gpu(&m, 0, GPU_KERNEL, device ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL" : "gemm", 90, 95);
		struct profile *p = finish(&m);
		struct roles *r = roles_new(p, p->steps, &roles_own, NULL, NULL);
		if (device)
			assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_COMM] = 30 + 5, [ROLE_CPU] = 20, [ROLE_OTHER] = 45});
		else
			assert_costs(&r->sum, (int64_t[ROLES]){[ROLE_COMM] = 50, [ROLE_KERNEL] = 5, [ROLE_OTHER] = 45});
		roles_free(r);
		profile_free(p);
	}
}

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
	struct roles *own = roles_new(p, p->steps, &roles_own, NULL, NULL);
	assert_costs(&own->sum, (int64_t[ROLES]){[ROLE_RUNTIME] = 20, [ROLE_OTHER] = 80});
	assert_true(own->has_device); /* calls are a sign of a device */
	roles_free(own);
	profile_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_several_steps), cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_collectives_on_the_host), cmocka_unit_test(test_driver_calls),
	};
	return RUN_TESTS(tests);
}
