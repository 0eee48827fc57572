/* Steps with planted roles, for the tests of roles by opscope's rules and by those of others. */
#ifndef OPSCOPE_TESTS_ROLE_STEPS_H
#define OPSCOPE_TESTS_ROLE_STEPS_H

#include "profile_builder.h"

#include "analysis/steps/roles.h"

static inline void step(struct builder *m, uint32_t t, int number, int64_t start, int64_t end)
{
	char name[32];
	snprintf(name, sizeof name, "ProfilerStep#%d", number);
	builder_span(m, t, SPAN_USER, name, start, end);
}

static inline void assert_costs(const struct role_costs *c, const int64_t want[ROLES])
{
	int64_t sum = 0;
	for (int i = 0; i < ROLES; i++) {
		if (c->ns[i] != want[i])
			fail_msg("%s: %lld, not %lld", role_id[i], (long long)c->ns[i], (long long)want[i]);
		sum += c->ns[i];
	}
	assert_int_equal(sum, c->total_ns);
}

static inline struct profile *finish(struct builder *m)
{
	return builder_finish(m, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
}

/* Each role is longer than what is left for it. Work is launched by no call: the step is not moved to it. */
static inline struct profile *staircase(void)
{
	struct builder m;
	builder_begin(&m);
	uint32_t t = builder_track(&m, "1", "1"), other = builder_track(&m, "1", "2");
	step(&m, t, 1, 0, 100);
	builder_gpu(&m, 0, GPU_KERNEL, "gemm", 0, 10);
	builder_gpu(&m, 0, GPU_MEMSET, "Memset (Device)", 5, 14);
	builder_gpu(&m, 0, GPU_MEMSET, "Memset (Device)", 30, 34);
	builder_gpu(&m, 0, GPU_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 12, 24);
	builder_gpu(&m, 0, GPU_MEMCPY, "Memcpy HtoD (Pageable -> Device)", 20, 40);
	builder_call(&m, t, "cudaDeviceSynchronize", 35, 50, ID_NONE);
	builder_span(&m, other, SPAN_USER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 45, 65);
	builder_span(&m, t, SPAN_OP, "aten::add", 60, 80);
	return finish(&m);
}

#endif
