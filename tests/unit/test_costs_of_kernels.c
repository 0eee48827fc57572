/* Which op's model covers which kernel, and that each call counts once, on small made-up profiles. */
#include "test.h"

#include "analysis/analysis.h"
#include "analysis/costs.h"
#include "store/build.h"

/* One thread and one stream; times in ns. An op at [start, end); a kernel launched at `at` that ran `ns`. */
struct maker {
	struct profile *p;
	struct build b;
	uint32_t thread, stream, launch;
	uint16_t cat;
	int64_t next_corr;
};

static struct maker begin(void)
{
	struct maker m = {.p = profile_new(), .next_corr = 1};
	struct launch_row none = launch_none();
	build_init(&m.b, m.p);
	m.thread = build_track(&m.b, STR("1"), STR("1"));
	m.stream = build_track(&m.b, STR("0"), STR("7"));
	m.launch = build_launch(&m.b, &none);
	m.cat = build_cat(&m.b, intern_str(&m.p->strings, STR("cpu_op")));
	return m;
}

static uint32_t text(struct maker *m, const char *s) { return intern_str(&m->p->strings, str_from(s)); }

static void op(struct maker *m, const char *name, int64_t start, int64_t end, const char *dims, const char *types, int64_t seq, int32_t fwd)
{
	struct arg_pair pairs[] = {{text(m, "Input Dims"), text(m, dims), 0}, {text(m, "Input type"), text(m, types), 0}};
	build_span(&m->b, &(struct span_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .link_id = seq, .aux_id = fwd,
	                                     .name = text(m, name), .track = m->thread, .args = *dims ? build_args(&m->b, pairs, 2) : 0,
	                                     .cat = m->cat, .kind = SPAN_OP});
}

static void kernel(struct maker *m, const char *name, int64_t at, int64_t ns)
{
	int64_t corr = m->next_corr++;
	build_span(&m->b, &(struct span_row){.start_ns = at, .dur_ns = 1, .ext_id = ID_NONE, .link_id = corr, .aux_id = -1,
	                                     .name = text(m, "cudaLaunchKernel"), .track = m->thread, .cat = m->cat, .kind = SPAN_CALL});
	build_gpu(&m->b, &(struct gpu_row){.start_ns = 10000 + at * 100, .dur_ns = ns, .ext_id = ID_NONE, .corr_id = corr, .name = text(m, name),
	                                   .track = m->stream, .launch = m->launch, .cat = m->cat, .kind = GPU_KERNEL});
}

static struct costs *end(struct maker *m)
{
	struct err e = {0};
	assert_int_equal(build_finish(&m->b, &e), 0);
	assert_int_equal(analysis_run(m->p, PASS_NEST | PASS_CORRELATE, &e), 0);
	return costs_new(m->p, COST_DEFAULT);
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_innermost), cmocka_unit_test(test_nothing_twice),
	                                   cmocka_unit_test(test_backward), cmocka_unit_test(test_uncovered)};
	return RUN_TESTS(tests);
}
