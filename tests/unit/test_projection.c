/* Ranges projected onto devices, against a look at every launch for every range; statistics against sorting. */
#include "profile_builder.h"

#include <stdlib.h>

#include "analysis/tree/projection.h"
#include "base/mem.h"
#include "query/stats.h"

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* Threads 1.1, 1.2 and 2.1; calls that launch none, one or (graphs) several; ranges of both kinds, crossing as they please. */
static struct profile *random_profile(uint32_t seed, int calls, int ranges)
{
	struct builder m;
	builder_begin(&m);
	uint32_t track[] = {builder_track(&m, "1", "1"), builder_track(&m, "1", "2"), builder_track(&m, "2", "1")};
	for (int i = 0; i < calls; i++) {
		int64_t start = next_random(&seed) % 1000, dur = next_random(&seed) % 3;
		builder_call(&m, track[next_random(&seed) % 3], "call", start, start + dur, i);
		for (uint32_t n = next_random(&seed) % 3; n--;) {
			int64_t at = start + next_random(&seed) % 500, ns = next_random(&seed) % 50;
			struct gpu_row r = builder_gpu_row(&m, 0, (enum gpu_kind)(next_random(&seed) % GPU_KINDS), "work", at, at + ns);
			r.corr_id = i;
			build_gpu(&m.b, &r);
		}
	}
	for (int i = 0; i < ranges; i++) {
		int64_t start = next_random(&seed) % 1000, dur = next_random(&seed) % 700;
		uint32_t on = track[next_random(&seed) % 3];
		builder_span(&m, on, next_random(&seed) % 2 ? SPAN_USER : SPAN_RANGE, "range", start, start + dur);
	}
	return builder_finish(&m, PASS_NEST | PASS_CORRELATE);
}

static struct projected brute_force(const struct profile *p, uint32_t span)
{
	struct projected r = {.start_ns = INT64_MAX, .end_ns = INT64_MIN, .kernel_start_ns = INT64_MAX, .kernel_end_ns = INT64_MIN};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t call = p->gpu_op.call[g];
		if (call == ROW_NONE || p->span.start_ns[call] < p->span.start_ns[span] || p->span.start_ns[call] >= span_end(p, span))
			continue;
		uint32_t a = p->span.track[call], b = p->span.track[span];
		if (p->span.kind[span] == SPAN_RANGE ? p->track.pid_text[a] != p->track.pid_text[b] : a != b)
			continue;
		r.ops++;
		r.device_ns += p->gpu_op.dur_ns[g];
		r.start_ns = p->gpu_op.start_ns[g] < r.start_ns ? p->gpu_op.start_ns[g] : r.start_ns;
		r.end_ns = gpu_end(p, g) > r.end_ns ? gpu_end(p, g) : r.end_ns;
		if (p->gpu_op.kind[g] != GPU_KERNEL)
			continue;
		r.kernels++;
		r.kernel_ns += p->gpu_op.dur_ns[g];
		r.kernel_start_ns = p->gpu_op.start_ns[g] < r.kernel_start_ns ? p->gpu_op.start_ns[g] : r.kernel_start_ns;
		r.kernel_end_ns = gpu_end(p, g) > r.kernel_end_ns ? gpu_end(p, g) : r.kernel_end_ns;
	}
	return r;
}

static void test_projection(void **state)
{
	(void)state;
	static const int sizes[][2] = {{0, 5}, {1, 5}, {40, 40}, {500, 100}, {3000, 100}};
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		struct profile *p = random_profile((uint32_t)s + 1, sizes[s][0], sizes[s][1]);
		struct projection *x = projection_new(p);
		for (uint32_t i = 0; i < p->span.rows.n; i++) {
			if (p->span.kind[i] != SPAN_USER && p->span.kind[i] != SPAN_RANGE)
				continue;
			struct projected got = projection_of(x, i), want = brute_force(p, i);
			assert_int_equal(got.ops, want.ops);
			assert_int_equal(got.kernels, want.kernels);
			assert_int_equal(got.device_ns, want.device_ns);
			assert_int_equal(got.kernel_ns, want.kernel_ns);
			if (want.ops)
				assert_true(got.start_ns == want.start_ns && got.end_ns == want.end_ns);
			if (want.kernels)
				assert_true(got.kernel_start_ns == want.kernel_start_ns && got.kernel_end_ns == want.kernel_end_ns);
		}
		projection_free(x);
		profile_free(p);
	}
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void test_median(void **state)
{
	(void)state;
	static const uint32_t ranges[] = {1, 2, 10, 1000000}; /* many equal values, few */
	for (uint32_t n = 1; n < 200; n++) {
		for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
			int64_t sorted[200];
			uint32_t seed = n;
			struct stats s = {0};
			for (uint32_t i = 0; i < n; i++) {
				sorted[i] = next_random(&seed) % ranges[r];
				assert_int_equal(stats_add(&s, "b", 1, sorted[i]), 0);
				assert_int_equal(stats_add(&s, "c", 1, -1), 1);
			}
			stats_finish(&s);
			qsort(sorted, n, sizeof sorted[0], compare);
			double want = n % 2 ? (double)sorted[n / 2] : (double)(sorted[n / 2 - 1] + sorted[n / 2]) / 2;
			assert_true(stats_median(&s, 0) == want);
			assert_true(stats_median(&s, 1) == -1 && stats_stddev(&s, 1) == 0);
			assert_true(s.v[0].min == sorted[0] && s.v[0].max == sorted[n - 1]);
			stats_release(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_projection), cmocka_unit_test(test_median)};
	return RUN_TESTS(tests);
}
