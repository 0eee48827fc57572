/* What a moment is used for: the order of uses, several GPUs, many windows (analysis/time/usage.h). */
#include "profile_builder.h"

#include "analysis/time/usage.h"
#include "base/mem.h"

static const char tc_name[] = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", simt_name[] = "volta_sgemm_128x64_nn",
                  unknown_name[] = "my_own_thing";

struct maker {
	struct builder b;
	struct profile *p;
	uint32_t thread;
};

static void begin(struct maker *m)
{
	builder_begin(&m->b);
	m->p = m->b.p;
	m->thread = builder_track(&m->b, "100", "1");
}

static void on_host(struct maker *m, uint8_t kind, const char *name, int64_t start, int64_t end)
{
	builder_span(&m->b, m->thread, kind, name, start, end);
}

static void on_gpu(struct maker *m, int gpu, enum gpu_kind kind, const char *name, int64_t start, int64_t end)
{
	builder_gpu(&m->b, gpu, kind, name, start, end);
}

static void finish(struct maker *m)
{
	builder_finish(&m->b, PASS_OPS | PASS_STEPS);
}

static void assert_uses(const struct usage *u, const double want[USAGES])
{
	double sum = 0;
	for (int k = 0; k < USAGES; k++) {
		if (u->ns[k] != want[k])
			fail_msg("%s: %f, not %f", usage_id[k], u->ns[k], want[k]);
		sum += u->ns[k];
	}
	assert_true(sum == (double)u->window_ns);
}

/* Each use is longer than what is left for it. */
static void staircase(struct maker *m)
{
	begin(m);
	on_gpu(m, 0, GPU_KERNEL, tc_name, 0, 10);
	on_gpu(m, 0, GPU_KERNEL, simt_name, 5, 20);
	on_gpu(m, 0, GPU_KERNEL, unknown_name, 10, 28);
	on_gpu(m, 0, GPU_MEMCPY, "Memcpy HtoD", 15, 30);
	on_host(m, SPAN_USER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 25, 50);
	on_host(m, SPAN_OS, "fread", 40, 60);
	on_host(m, SPAN_OS, "pread64", 40, 62);
	on_host(m, SPAN_OS, "poll", 0, 100);
	on_host(m, SPAN_OP, "aten::add", 55, 75);
	on_host(m, SPAN_CALL, "cudaFree", 76, 80);
	finish(m);
}

static void test_order(void **state)
{
	struct maker m;
	struct usage u;
	staircase(&m);
	usage_measure(m.p, 0, 100, NULL, &u);
	assert_uses(&u, (double[USAGES]){[USAGE_TC] = 10, [USAGE_KERNEL] = 10, [USAGE_UNKNOWN] = 8, [USAGE_MEMORY] = 2, [USAGE_DATALOADER] = 20,
	                                 [USAGE_IO] = 12, [USAGE_CPU] = 17, [USAGE_OTHER] = 21});
	assert_true(u.kernel_busy_ns == 28 && u.device_busy_ns == 30);
	/* a window cuts what reaches beyond it; an empty one has nothing */
	usage_measure(m.p, 8, 45, NULL, &u);
	assert_uses(&u, (double[USAGES]){[USAGE_TC] = 2, [USAGE_KERNEL] = 10, [USAGE_UNKNOWN] = 8, [USAGE_MEMORY] = 2, [USAGE_DATALOADER] = 15});
	usage_measure(m.p, 50, 50, NULL, &u);
	assert_uses(&u, (double[USAGES]){0});
	profile_free(m.p);
}

/* Averages over the GPUs that did something. */
static void test_several_gpus(void **state)
{
	struct maker m;
	struct usage u;
	begin(&m);
	for (int i = 0; i < 3; i++)
		builder_device(&m.b, i, 0);
	on_gpu(&m, 0, GPU_KERNEL, tc_name, 0, 60);
	on_gpu(&m, 1, GPU_KERNEL, simt_name, 30, 60);
	on_host(&m, SPAN_OP, "aten::add", 0, 90);
	finish(&m);
	usage_measure(m.p, 0, 120, NULL, &u);
	assert_int_equal(u.gpus, 2);
	assert_uses(&u, (double[USAGES]){[USAGE_TC] = 30, [USAGE_KERNEL] = 15, [USAGE_CPU] = 45, [USAGE_OTHER] = 30});
	profile_free(m.p);
}

/* However the time is cut, the parts add up. */
static void test_windows(void **state)
{
	enum { N = 50 };
	struct maker m;
	struct usage all, part[N];
	int64_t start[N], end[N];
	staircase(&m);
	for (int i = 0; i < N; i++) {
		start[i] = 2 * i;
		end[i] = start[i] + 2;
	}
	usage_measure(m.p, 0, 2 * N, NULL, &all);
	usage_measure_all(m.p, start, end, N, NULL, part);
	for (int k = 0; k < USAGES; k++) {
		double sum = 0;
		for (int i = 0; i < N; i++)
			sum += part[i].ns[k];
		assert_true(sum == all.ns[k]);
	}
	profile_free(m.p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_several_gpus), cmocka_unit_test(test_windows),
	};
	return RUN_TESTS(tests);
}
