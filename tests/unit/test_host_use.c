/* What each range of the host stands for (analysis/time/host_use.h). */
#include "profile_builder.h"

#include "analysis/steps/steps.h"
#include "analysis/time/host_use.h"

static const char *const use_name[] = {"none", "call", "dataloader", "comm", "io", "cpu"};

static void span_of(struct builder *m, uint32_t track, uint8_t kind, const char *cat, const char *name)
{
	static int64_t at;
	at += 10;
	struct span_row r = builder_span_row(m, track, kind, name, at, at + 5);
	r.cat = build_cat(&m->b, builder_text(m, cat));
	build_span(&m->b, &r);
}

static void check(struct builder *m, uint32_t i, enum host_use want)
{
	struct host_uses *h = host_uses_new(m->p);
	for (int again = 0; again < 2; again++) { /* a name is looked at once */
		enum host_use got = host_use_of(h, i);
		if (got != want)
			fail_msg(STR_FMT ": %s, not %s", STR_ARG(profile_str(m->p, m->p->span.name[i])), use_name[got], use_name[want]);
	}
	host_uses_free(h);
}

static void test_uses(void **state)
{
	static const struct { uint8_t kind; const char *cat, *name; enum host_use want; } v[] = {
		{SPAN_CALL, "cuda_runtime", "cudaFree", HOST_CALL},
		{SPAN_OP, "cpu_op", "aten::add", HOST_CPU},
		{SPAN_USER, "user_annotation", "my range", HOST_CPU},
		{SPAN_OP, "cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", HOST_DATALOADER},
		{SPAN_USER, "user_annotation", "enumerate(DataPipe)#MapperIterDataPipe", HOST_DATALOADER},
		{SPAN_RANGE, "nvtx", "torch.utils.data.dataloader.DataLoader", HOST_DATALOADER},
		{SPAN_RANGE, "nvtx", "aten::add", HOST_NONE},
		{SPAN_OP, "cpu_op", "nccl:all_reduce", HOST_COMM},
		{SPAN_USER, "user_annotation", "ProfilerStep#7", HOST_NONE},
		{SPAN_RANGE, "nvtx", "ProfilerStep#7", HOST_NONE},
		{SPAN_OS, "osrt", "fread", HOST_IO},
		{SPAN_OS, "osrt", "preadv", HOST_IO},
		{SPAN_OS, "osrt", "freadx", HOST_NONE},
		{SPAN_OS, "osrt", "poll", HOST_NONE},
		{SPAN_USER, "user_annotation", "fread", HOST_CPU}, /* OS calls alone are I/O */
		{SPAN_PYTHON, "python_function", "train.py(1): step", HOST_NONE},
		{SPAN_PYTHON, "Python", "train.py(1): step", HOST_CPU},
		{SPAN_OVERHEAD, "overhead", "Activity Buffer Request", HOST_NONE},
		{SPAN_TRACE, "Trace", "PyTorch Profiler (0)", HOST_NONE},
		{SPAN_GPU_USER, "gpu_user_annotation", "my range", HOST_NONE},
	};
	enum { N = sizeof v / sizeof v[0] };
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1");
	for (size_t i = 0; i < N; i++)
		span_of(&m, t, v[i].kind, v[i].cat, v[i].name);
	builder_finish(&m, PASS_STEPS);
	assert_int_equal(m.p->span.rows.n, N); /* in order of time, which is that of the list */
	for (uint32_t i = 0; i < N; i++)
		check(&m, i, v[i].want);
	profile_free(m.p);
}

/* Ranges that are no work since they mark steps, and any other with the name of one. */
static void test_named_steps(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t one = builder_track(&m, "1", "1"), two = builder_track(&m, "1", "2");
	for (int i = 0; i < 4; i++) {
		char name[32];
		snprintf(name, sizeof name, "train_step %d", i);
		builder_span(&m, one, SPAN_USER, name, 100 * i, 100 * i + 90);
		builder_span(&m, one, SPAN_OP, "aten::add", 100 * i + 10, 100 * i + 20);
	}
	builder_span(&m, one, SPAN_USER, "train_step 2", 230, 280); /* inside the step of that name: none of its own */
	builder_span(&m, two, SPAN_USER, "train_stepping", 310, 320);
	builder_finish(&m, PASS_STEPS);
	assert_int_equal(m.p->steps->source, STEPS_NAMED);
	assert_int_equal(m.p->steps->total, 4);
	for (uint32_t i = 0; i < m.p->span.rows.n; i++) {
		struct str name = profile_str(m.p, m.p->span.name[i]);
		check(&m, i, str_starts(name, STR("train_step ")) ? HOST_NONE : HOST_CPU);
	}
	profile_free(m.p);
}

static void test_free_nothing(void **state)
{
	host_uses_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_uses), cmocka_unit_test(test_named_steps), cmocka_unit_test(test_free_nothing)};
	return RUN_TESTS(tests);
}
