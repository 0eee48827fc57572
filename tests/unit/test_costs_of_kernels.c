/* Which op's model covers which kernel, and that each call counts once, on small made-up profiles. */
#include "profile_builder.h"

#include "analysis/costs/costs.h"
#include "analysis/costs/tc_used.h"
#include "analysis/time/bounds.h"
#include "store/reuse.h"

/* One thread and one stream. */
struct maker {
	struct builder b;
	struct profile *p;
	uint32_t thread;
};

static struct maker begin(void)
{
	struct maker m;
	builder_begin(&m.b);
	m.p = m.b.p;
	m.thread = builder_track(&m.b, "1", "1");
	return m;
}

static void op(struct maker *m, const char *name, int64_t start, int64_t end, const char *dims, const char *types, int64_t seq, int32_t fwd)
{
	struct span_row r = builder_span_row(&m->b, m->thread, SPAN_OP, name, start, end);
	if (*dims)
		r.args = builder_args(&m->b, (const char *const[]){"Input Dims", dims, "Input type", types, NULL});
	r.link_id = seq;
	r.aux_id = fwd;
	build_span(&m->b.b, &r);
}

/* Launched at `at`; ran `ns`. */
static void kernel(struct maker *m, const char *name, int64_t at, int64_t ns)
{
	builder_launch(&m->b, m->thread, at, at + 1, 0, name, 10000 + at * 100, 10000 + at * 100 + ns);
}

static struct costs *end(struct maker *m)
{
	return costs_new(builder_finish(&m->b, PASS_NEST | PASS_CORRELATE), &cost_own);
}

static void done(struct maker *m, struct costs *c)
{
	assert_int_equal(c->kernel_ns, c->modelled_ns + c->unmodelled_ns + c->unattributed_ns);
	costs_free(c);
	profile_free(m->p);
}

#define MM "[[4,5],[5,6]]"
#define FF "[\"float\",\"float\"]"

/* linear > addmm > (gemm, a reduction of its split): the innermost op's model, at its gemm; linear counts nothing. */
static void test_innermost(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "aten::linear", 0, 50, "[[4,5],[6,5],[6]]", "[\"float\",\"float\",\"float\"]", -1, -1);
	op(&m, "aten::addmm", 10, 40, "[[6],[4,5],[5,6]]", "[\"float\",\"float\",\"float\"]", -1, -1);
	kernel(&m, "ampere_sgemm_128x64_tn", 12, 100);
	kernel(&m, "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", 14, 300);
	struct costs *c = end(&m);
	assert_int_equal(costs_flops(c, 0), 240);
	assert_int_equal(costs_bytes(c, 0), 4 * (6 + 20 + 30 + 24));
	assert_int_equal(c->parts[0], 1);
	assert_int_equal(c->of_gpu[0], c->of_gpu[1]);
	assert_true(c->parts[1] == 0 && costs_flops(c, 1) == 0);
	assert_int_equal(c->modelled_ns, 400);
	done(&m, c);
}

/* An op that launches a kernel itself and has another of its kind inside counts nothing; a copy inside does not matter. */
static void test_nothing_twice(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "aten::matmul", 0, 50, MM, FF, -1, -1);
	kernel(&m, "ampere_sgemm_128x64_nn", 2, 10);
	op(&m, "aten::mm", 10, 40, MM, FF, -1, -1);
	kernel(&m, "ampere_sgemm_128x64_tn", 12, 100);
	op(&m, "aten::mm", 60, 90, MM, FF, -1, -1);
	op(&m, "aten::copy_", 62, 70, "[[4,5],[4,5]]", FF, -1, -1);
	kernel(&m, "void at::native::elementwise_kernel<128, 2, copy>", 64, 5);
	kernel(&m, "ampere_sgemm_128x64_nt", 75, 50);
	struct costs *c = end(&m);
	const int64_t want[] = {0, 240, 0, 240};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(costs_flops(c, i), want[i]);
	assert_int_equal(costs_bytes(c, 2), 160);
	assert_int_equal(c->modelled_ns, 165);
	done(&m, c);
}

/* A backward op without shapes has the backward of its forward op: half of it at each of the two products, whatever else runs. */
static void test_backward(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "aten::mm", 0, 10, MM, FF, 7, 0);
	kernel(&m, "ampere_sgemm_128x64_tn", 2, 10);
	op(&m, "MmBackward0", 20, 60, "", "", 7, 1);
	kernel(&m, "ampere_sgemm_128x64_nn", 22, 20);
	kernel(&m, "ampere_sgemm_128x64_nt", 24, 30);
	kernel(&m, "void at::native::vectorized_elementwise_kernel<4, add>", 26, 90);
	op(&m, "aten::mm", 100, 110, MM, FF, 8, 0);
	op(&m, "MmBackward0", 120, 160, "", "", 8, 1);
	kernel(&m, "ampere_sgemm_128x64_nn", 122, 20);
	struct costs *c = end(&m);
	const int64_t want[] = {240, 240, 240, 0, 240};
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(costs_flops(c, i), want[i]);
	assert_int_equal(c->cost[c->of_gpu[1]].flops, 480);
	done(&m, c);
}

/* A collective that its kernel describes, an op without a model, one without shapes, and work that no op launched. */
static void test_uncovered(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "my::op", 0, 10, MM, FF, -1, -1);
	kernel(&m, "my_kernel", 2, 10);
	op(&m, "aten::mm", 20, 30, "", "", -1, -1);
	kernel(&m, "ampere_sgemm_128x64_nn", 22, 20);
	kernel(&m, "stray", 50, 40);
	struct costs *c = end(&m);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(c->of_gpu[i], ROW_NONE);
		assert_int_equal(costs_flops(c, i), COST_UNKNOWN);
		assert_int_equal(costs_bytes(c, i), COST_UNKNOWN);
	}
	assert_true(c->unmodelled_ns == 30 && c->unattributed_ns == 40 && c->modelled_ns == 0);
	const struct cost *model = costs_of_span(c, m.p, 0, COST_FORWARD);
	assert_true(model->flops == COST_UNKNOWN && model->why.n > 0);
	done(&m, c);
}

/* A server's attention costs what its iteration says, and nothing is known where none does; other ops cost the same in each iteration. */
static void test_batches(void **state)
{
	(void)state;
	static const char dims[] = "[[4,8,64],[4,2,64],[4,2,64],[4,8,64]]", types[] = "[\"c10::Half\",\"c10::Half\",\"c10::Half\",\"c10::Half\"]";
	static const char attention[] = "vllm::unified_attention_with_output";
	struct maker m = begin();
	builder_span(&m.b, m.thread, SPAN_USER, "execute_6_context_1(sq2sk9sqsq4sqsk18)_generation_4(sq4sk100sqsq4sqsk100)", 0, 30);
	builder_span(&m.b, m.thread, SPAN_USER, "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk104sqsq4sqsk104)", 40, 70);
	builder_span(&m.b, m.thread, SPAN_USER, "execute_context_0(0)_generation_4(4)", 80, 99);
	for (int64_t at = 0; at < 120; at += 40) {
		op(&m, attention, at + 1, at + 9, dims, types, -1, -1);
		kernel(&m, "kernel_unified_attention_2d", at + 2, 10);
		op(&m, "aten::mm", at + 11, at + 19, MM, FF, -1, -1);
		kernel(&m, "ampere_sgemm_128x64_tn", at + 12, 10);
	}
	op(&m, attention, 31, 39, dims, types, -1, -1);
	kernel(&m, "kernel_unified_attention_2d", 32, 10);
	struct costs *c = end(&m);
	int64_t same = 2 * 2 * 4 * 8 * 64; /* queries and result */
	assert_int_equal(costs_flops(c, 0), 4 * 8 * 64 * 118);
	assert_int_equal(costs_bytes(c, 0), same + 2 * 2 * 2 * 64 * 109);
	assert_int_equal(costs_flops(c, 3), 4 * 8 * 64 * 104);
	assert_int_equal(costs_bytes(c, 3), same + 2 * 2 * 2 * 64 * 104);
	assert_true(c->of_gpu[2] == ROW_NONE && c->of_gpu[5] == ROW_NONE);
	assert_true(c->of_gpu[1] == c->of_gpu[4] && c->of_gpu[1] == c->of_gpu[6]);
	done(&m, c);
}

#define BF16X2 "[\"c10::BFloat16\",\"c10::BFloat16\"]"

/* A mixture of experts of 2 tokens, each through 2 of 4 experts; its ops inside say how large these are. `third`: one more view of bytes. */
static void mixture(struct maker *m, int64_t at, bool third)
{
	static const char bytes[] = "[\"unsigned char\",\"ScalarList\"]";
	op(m, "vllm::moe_forward", at, at + 90, "[[2,8],[2,4]]", BF16X2, -1, -1);
	struct span_row top = builder_span_row(&m->b, m->thread, SPAN_OP, "TopK", at + 1, at + 9);
	top.args = builder_args(&m->b, (const char *const[]){"Input Dims", "[[2,4],[]]", "Input type", "[\"c10::BFloat16\",\"Scalar\"]", "Concrete Inputs", "[\"\",\"2\"]", NULL});
	build_span(&m->b.b, &top);
	op(m, "aten::view", at + 10, at + 11, "[[4,4,12],[]]", bytes, -1, -1);
	op(m, "aten::view", at + 12, at + 13, "[[2,8,1],[]]", "[\"c10::BFloat16\",\"ScalarList\"]", -1, -1);
	op(m, "aten::view", at + 50, at + 51, "[[4,3,8],[]]", bytes, -1, -1);
	if (third)
		op(m, "aten::view", at + 60, at + 61, "[[4,3,8],[]]", bytes, -1, -1);
}

/* Its two products stand at the kernels that make them, whichever is longer; at the longest where that cannot be told. */
static void test_experts(void **state)
{
	(void)state;
	static const char product[] = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1";
	struct maker m = begin();
	mixture(&m, 0, false);
	kernel(&m, product, 20, 10);
	kernel(&m, product, 55, 90);
	kernel(&m, "_finalize_matmul_scatter_bf16", 70, 200);
	op(&m, "aten::mm", 80, 85, MM, FF, -1, -1); /* shared by all tokens */
	kernel(&m, "ampere_sgemm_128x64_tn", 81, 1);
	mixture(&m, 100, false);
	kernel(&m, product, 120, 10);
	kernel(&m, product, 155, 90);
	kernel(&m, product, 170, 20);
	mixture(&m, 200, true);
	kernel(&m, product, 220, 10);
	struct costs *c = end(&m);
	const int64_t up = 2 * 4 * 8 * 12, down = 2 * 4 * 6 * 8, tokens = 32, expert_up = 48, expert_down = 24;
	const int64_t flops[] = {up, down, 0, 240, 0, up + down, 0}, bytes[] = {tokens + 3 * expert_up, tokens + 3 * expert_down, 0, 296, 0, 2 * tokens + 3 * (expert_up + expert_down), 0};
	const int64_t least[] = {tokens + 2 * expert_up, tokens + 2 * expert_down, 0, 296, 0, 2 * tokens + 2 * (expert_up + expert_down), 0};
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(costs_flops(c, i), flops[i]);
		assert_int_equal(costs_bytes(c, i), bytes[i]);
		assert_int_equal(costs_bytes_least(c, i), least[i]);
	}
	assert_int_equal(c->cost[c->of_gpu[0]].dtype, DTYPE_BFLOAT16);
	assert_true(c->of_gpu[7] == ROW_NONE);
	done(&m, c);
}

/* A Triton kernel is named alike for all types: each call's answer is by its op. An op without a model has several types: the widest decides. */
static void test_tensor_cores(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "aten::mm", 0, 9, MM, "[\"c10::BFloat16\",\"c10::BFloat16\"]", -1, -1);
	kernel(&m, "triton_tem_fused_mm_1", 1, 10);
	op(&m, "aten::mm", 10, 19, MM, FF, -1, -1);
	kernel(&m, "triton_tem_fused_mm_1", 11, 10);
	op(&m, "my::attention", 20, 39, MM, "[\"c10::Half\",\"c10::Half\"]", -1, -1);
	op(&m, "my::inner", 21, 38, "", "", -1, -1);
	kernel(&m, "kernel_unified_attention_2d", 22, 10);
	op(&m, "my::mixed", 40, 49, MM, "[\"c10::Half\",\"float\"]", -1, -1);
	kernel(&m, "kernel_unified_attention_2d", 41, 10);
	op(&m, "my::untyped", 50, 59, "", "", -1, -1);
	kernel(&m, "attn_fwd", 51, 10);
	kernel(&m, "attn_fwd", 60, 10);
	kernel(&m, "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", 70, 10);
	struct costs *c = end(&m);
	static const enum tri want[] = {TRI_YES, TRI_UNKNOWN, TRI_YES, TRI_UNKNOWN, TRI_UNKNOWN, TRI_UNKNOWN, TRI_YES};
	for (uint32_t g = 0; g < sizeof want / sizeof want[0]; g++)
		assert_int_equal(gpu_tensor_core(m.p, g), want[g]);
	done(&m, c);
}

/* Fewer blocks than a tenth of the SMs; of three dimensions, and not where blocks or SMs are unknown. */
static void test_small(void **state)
{
	(void)state;
	struct maker m = begin();
	builder_device(&m.b, 0, INT64_C(1) << 34);
	kernel(&m, "loss", 10, 20000);
	struct costs *c = end(&m);
	static const struct {
		int32_t sms, x, y, z;
		bool small;
	} rows[] = {{132, 1, 1, 1, true}, {132, 13, 1, 1, true}, {132, 14, 1, 1, false}, {132, 1, 7, 2, false}, {132, 1, 6, 2, true}, {132, 132, 1, 1, false}, {9, 1, 1, 1, false},
	            {0, 1, 1, 1, false}, {132, 0, 1, 1, false}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		m.p->device.sm_count[0] = rows[i].sms;
		m.p->launch.grid_x[0] = rows[i].x;
		m.p->launch.grid_y[0] = rows[i].y;
		m.p->launch.grid_z[0] = rows[i].z;
		assert_int_equal(bounds_is_small(m.p, 0), rows[i].small);
	}
	done(&m, c);
}

/* Of costs that are kept each user has additions of its own, whatever others asked for before. */
static void test_kept(void **state)
{
	(void)state;
	struct maker m = begin();
	op(&m, "aten::mm", 0, 50, MM, FF, -1, -1);
	kernel(&m, "a_gemm_kernel", 10, 100);
	op(&m, "aten::bmm", 100, 150, "[[2,4,5],[2,5,6]]", FF, -1, -1); /* launched nothing: it is in none, until it is asked for */
	const struct profile *p = builder_finish(&m.b, PASS_NEST | PASS_CORRELATE);
	enum { MM_ROW, BMM_ROW = 2 };
	assert_string_equal(profile_str(p, p->span.name[BMM_ROW]).p, "aten::bmm");
	reuse_begin(m.p);
	struct costs *first = costs_new(p, &cost_own), *second = costs_new(p, &cost_own);
	assert_int_equal(first->n_made, first->n);
	const uint32_t made = first->n;
	assert_int_equal(costs_index_of_name(first, p, p->gpu_op.name[0], OP_UNKNOWN, DTYPE_FLOAT32), made);
	assert_int_equal(costs_index_of_span(first, p, BMM_ROW, COST_FORWARD), made + 1);
	assert_int_equal(second->n, made);
	assert_int_equal(costs_index_of_span(second, p, BMM_ROW, COST_FORWARD), made);
	assert_int_equal(costs_index_of_span(second, p, BMM_ROW, COST_FORWARD), made);
	assert_int_equal(costs_index_of_span(second, p, MM_ROW, COST_FORWARD), costs_index_of_span(first, p, MM_ROW, COST_FORWARD));
	assert_int_equal(second->cost[made].flops, first->cost[made + 1].flops);
	assert_int_equal(costs_of_span(second, p, BMM_ROW, COST_FORWARD)->flops, 2 * 2 * 4 * 5 * 6);
	assert_int_equal(costs_flops(second, 0), costs_flops(first, 0));
	enum cost_direction d;
	assert_string_equal(costs_facts(second, p, made, &d).name.p, "aten::bmm");
	assert_string_equal(costs_facts(second, p, second->of_gpu[0], &d).name.p, "aten::mm");
	costs_free(first);
	done(&m, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_innermost), cmocka_unit_test(test_nothing_twice),
	                                   cmocka_unit_test(test_backward), cmocka_unit_test(test_uncovered), cmocka_unit_test(test_batches), cmocka_unit_test(test_experts),
	                                   cmocka_unit_test(test_tensor_cores), cmocka_unit_test(test_kept)};
	return RUN_TESTS(tests);
}
