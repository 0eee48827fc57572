/* By DLProf's rules: what a moment is used for, how a recording is cut into iterations, what ops are called (its guide's example). */
#include "profile_builder.h"

#include <math.h>

#include "base/mem.h"
#include "input/marker.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_names.h"
#include "predecessors/dlprof/usage.h"
#include "query/report.h"

static const char tc_name[] = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", simt_name[] = "volta_sgemm_128x64_nn";

/* An NVTX range. */
static void put_range(struct builder *m, struct markers *markers, uint32_t track, int64_t start, int64_t end, const char *text)
{
	struct marker x = marker_read(markers, str_from(text), (struct str){0}, 0);
	build_span(&m->b, &(struct span_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .link_id = x.link_id, .aux_id = -1, .name = x.name,
	                                     .track = track, .args = x.args, .cat = build_cat(&m->b, builder_text(m, "nvtx")), .kind = x.kind});
}

static void assert_uses(const struct usage *u, const double want[USAGES])
{
	for (int k = 0; k < USAGES; k++)
		if (u->ns[k] != want[k])
			fail_msg("%s: %f, not %f", usage_id[k], u->ns[k], want[k]);
}

/* No use is unknown, and pread is no I/O. */
static void test_uses(void **state)
{
	struct builder m;
	struct usage u;
	builder_begin(&m);
	uint32_t thread = builder_track(&m, "100", "1");
	builder_gpu(&m, 0, GPU_KERNEL, tc_name, 0, 10);
	builder_gpu(&m, 0, GPU_KERNEL, simt_name, 5, 20);
	builder_gpu(&m, 0, GPU_KERNEL, "my_own_thing", 10, 28);
	builder_gpu(&m, 0, GPU_MEMCPY, "Memcpy HtoD", 15, 30);
	builder_span(&m, thread, SPAN_USER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 25, 50);
	builder_span(&m, thread, SPAN_OS, "fread", 40, 60);
	builder_span(&m, thread, SPAN_OS, "pread64", 40, 62);
	builder_span(&m, thread, SPAN_OS, "poll", 0, 100);
	builder_span(&m, thread, SPAN_OP, "aten::add", 55, 75);
	builder_span(&m, thread, SPAN_CALL, "cudaFree", 76, 80);
	struct profile *p = builder_finish(&m, PASS_OPS | PASS_STEPS);
	usage_measure(p, 0, 100, &dlprof_usage, &u);
	assert_uses(&u, (double[USAGES]){[USAGE_TC] = 10, [USAGE_KERNEL] = 18, [USAGE_MEMORY] = 2, [USAGE_DATALOADER] = 20, [USAGE_IO] = 10,
	                                 [USAGE_CPU] = 19, [USAGE_OTHER] = 21});
	profile_free(p);
}

/* Its recorder wraps the loader's iterator and marks it. */
static void test_loader(void **state)
{
	struct builder m;
	struct usage u;
	builder_begin(&m);
	struct markers *markers = markers_new(&m.b);
	put_range(&m, markers, builder_track(&m, "100", "1"), 10, 40, "{'mod': 'torch.utils.data.dataloader', 'op': 'DataLoader', 'args': []}");
	markers_free(markers);
	struct profile *p = builder_finish(&m, PASS_OPS | PASS_STEPS);
	usage_measure(p, 0, 100, &dlprof_usage, &u);
	assert_uses(&u, (double[USAGES]){[USAGE_DATALOADER] = 30, [USAGE_OTHER] = 70});
	assert_int_equal(u.gpus, 0);
	profile_free(p);
}

/* Averages are over all GPUs, those without work too. */
static void test_idle_gpus(void **state)
{
	struct builder m;
	struct usage u;
	builder_begin(&m);
	for (int i = 0; i < 3; i++)
		builder_device(&m, i, 0);
	builder_gpu(&m, 0, GPU_KERNEL, tc_name, 0, 60);
	builder_gpu(&m, 1, GPU_KERNEL, simt_name, 30, 60);
	builder_span(&m, builder_track(&m, "100", "1"), SPAN_OP, "aten::add", 0, 90);
	struct profile *p = builder_finish(&m, PASS_OPS | PASS_STEPS);
	usage_measure(p, 0, 120, &dlprof_usage, &u);
	assert_int_equal(u.gpus, 3);
	assert_uses(&u, (double[USAGES]){[USAGE_TC] = 20, [USAGE_KERNEL] = 10, [USAGE_CPU] = 60, [USAGE_OTHER] = 30});
	assert_true(u.kernel_busy_ns == 30);
	profile_free(p);
}

/* Four rounds of 60 ns, each with an optimizer of 8 ns at its 20th, from 1000 on; at the end 100 ns more. */
static struct profile *make_rounds(void)
{
	struct builder m;
	builder_begin(&m);
	uint32_t thread = builder_track(&m, "100", "1");
	builder_span(&m, thread, SPAN_USER, "import", 0, 500);
	for (int64_t start = 1000; start < 1240; start += 60) {
		builder_span(&m, thread, SPAN_USER, "next", start, start + 5);
		builder_launch(&m, thread, start + 10, start + 14, 0, "forward", start + 15, start + 23);
		builder_span(&m, thread, SPAN_USER, "Optimizer.step#SGD.step", start + 20, start + 28);
	}
	builder_span(&m, thread, SPAN_USER, "save", 1240, 1340);
	struct profile *p = builder_finish(&m, PASS_STEPS);
	p->zero_is_start = true;
	return p;
}

static void test_cuts_at_ends(void **state)
{
	struct profile *p = make_rounds();
	struct dlprof_iterations d;
	double mean, deviation;
	dlprof_iterations_of(p, STR("Optimizer.step#SGD.step"), &d);
	assert_int_equal(d.n, 5);
	assert_int_equal(d.calls, 4);
	assert_int_equal(d.start_ns[0], 0);
	assert_int_equal(d.stop_ns[0], 1027);
	assert_int_equal(d.start_ns[1], 1028);
	assert_int_equal(d.stop_ns[1], 1087);
	assert_int_equal(d.start_ns[4], 1028 + 3 * 60);
	assert_int_equal(d.stop_ns[4], 1340); /* the last event's end */
	dlprof_iterations_mean(&d, 0, 4, &mean, &deviation);
	assert_true(fabs(mean - 1340 / 5.0) < 1e-9); /* lengths sum to the whole */
	dlprof_iterations_mean(&d, 1, 3, &mean, &deviation);
	assert_true(mean == 60 && deviation == 0);
	dlprof_iterations_mean(&d, 0, 1, &mean, &deviation);
	assert_true(mean == 544 && deviation == 484); /* population form: of two, half their difference */
	dlprof_iterations_release(&d);
	profile_free(p);
}

static void test_no_key_op(void **state)
{
	struct profile *p = make_rounds();
	struct dlprof_iterations d;
	double mean, deviation;
	dlprof_iterations_of(p, STR(""), &d); /* no global_step here */
	assert_int_equal(d.n, 1);
	assert_int_equal(d.calls, 0);
	assert_int_equal(d.stop_ns[0], 1340);
	dlprof_iterations_mean(&d, 0, 0, &mean, &deviation);
	assert_true(mean == 1340 && deviation == 0);
	dlprof_iterations_release(&d);
	profile_free(p);
}

/* a calls b twice, b calls conv1d twice: four places, four ops. */
static void test_names(void **state)
{
	static const char *const stack[] = {"/a/b/conv1d", "/a/b/conv1d(2)", "/a/b(2)/conv1d", "/a/b(2)/conv1d(2)"};
	static const char *const printed[] = {"/a/b/conv1d", "/a/b/conv1d[2]", "/a/b[2]/conv1d", "/a/b[2]/conv1d[2]"};
	static const char *const id[] = {"CONV1D_1", "CONV1D_2", "CONV1D_3", "CONV1D_4"};
	struct builder m;
	struct arena texts = {0};
	uint32_t n;
	builder_begin(&m);
	struct markers *markers = markers_new(&m.b);
	uint32_t thread = builder_track(&m, "1", "10");
	for (int i = 0; i < 4; i++) {
		char text[256];
		snprintf(text, sizeof text, "{'traceMarker': ['a.py:1'], 'funcStack': '%s'}", stack[i]);
		put_range(&m, markers, thread, 100 * i + 9, 100 * i + 91, text);
		put_range(&m, markers, thread, 100 * i + 10, 100 * i + 90, "{'mod': 'torch.nn.functional', 'op': 'conv1d', 'args': []}");
	}
	markers_free(markers);
	struct profile *p = builder_finish(&m, PASS_OPS);
	struct dlprof_op_row *row = dlprof_op_order(p, &texts, &n);
	assert_int_equal(n, 4);
	for (int i = 0; i < 4; i++) {
		assert_str_equal(row[i].names.name, printed[i]);
		assert_str_equal(row[i].names.id, id[i]);
		assert_str_equal(dlprof_direction(&p->ops->op[row[i].op]), "fprop");
	}
	mem_free(row);
	arena_release(&texts);
	profile_free(p);
}

static void test_rows(void **state)
{
	struct err e;
	const struct report *kernels = report_find(STR("kernels"));
	assert_null(report_variant_of(kernels, &(struct report_args){.compat = "dlprof"}, &e));
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, "report kernels: --compat=dlprof goes with --group-by: op, instance");
	assert_string_equal(report_variant_of(kernels, &(struct report_args){.compat = "dlprof", .group_by = "op"}, NULL)->compat, "dlprof");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uses), cmocka_unit_test(test_loader), cmocka_unit_test(test_idle_gpus), cmocka_unit_test(test_cuts_at_ends),
		cmocka_unit_test(test_no_key_op), cmocka_unit_test(test_names), cmocka_unit_test(test_rows),
	};
	return RUN_TESTS(tests);
}
