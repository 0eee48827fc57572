/* What bench/capture.py times: capture_loop KIND THREADS PAIRS. CPU time of the whole process, the library's own thread included, in ns a pair,
 * the least of five rounds; and the wall time of that round. */
#include "opscope/trace.h"

#include "../tests/collect/nvtx_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* 66 characters: as long as a usual text of emit_nvtx. */
static const char text[] = "autograd::engine::evaluate_function: ConvolutionBackward0, op = 12";
static long pairs;
static void (*one)(long);

static void by_nvtx(long i)
{
	(void)i;
	nvtx_push(text);
	nvtx_pop();
}

static void by_emit_nvtx(long i)
{
	char unique[96];
	int n = 0;
	static const char head[] = "autograd::engine::evaluate_function: ConvolutionBackward0, op_id = ";
	memcpy(unique, head, sizeof head - 1);
	n = sizeof head - 1;
	for (long v = i + 1; v; v /= 10)
		unique[n++] = (char)('0' + (v % 10 ? v % 10 : 1));
	unique[n] = 0;
	nvtx_push(unique);
	nvtx_pop();
}

static void by_trace(long i)
{
	(void)i;
	opscope_push(text);
	opscope_pop();
}

static void by_trace_name(long i)
{
	static uint32_t name;
	if (!i)
		name = opscope_name(text);
	opscope_push_name(name);
	opscope_pop();
}

static void *loop(void *unused)
{
	for (long i = 0; i < pairs; i++)
		one(i);
	return unused;
}

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*one)(long); } kinds[] = {{"nvtx", by_nvtx}, {"emit_nvtx", by_emit_nvtx}, {"trace", by_trace}, {"trace_name", by_trace_name}};
	enum { MOST = 64, ROUNDS = 5 };
	pthread_t thread[MOST];
	int n = argc > 2 ? atoi(argv[2]) : 1;
	pairs = argc > 3 ? atol(argv[3]) : 1000000;
	for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof kinds[0]; i++)
		if (!strcmp(argv[1], kinds[i].name))
			one = kinds[i].one;
	if (!one || n < 1 || n > MOST)
		return 2;
	nvtx_load();
	double best_cpu = 1e300, best_wall = 1e300;
	for (int round = 0; round < ROUNDS; round++) {
		double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
		for (int i = 0; i < n; i++)
			if (pthread_create(&thread[i], NULL, loop, NULL))
				return 1;
		for (int i = 0; i < n; i++)
			pthread_join(thread[i], NULL);
		cpu = (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)n / (double)pairs;
		wall = (now(CLOCK_MONOTONIC) - wall) / (double)n / (double)pairs;
		best_cpu = cpu < best_cpu ? cpu : best_cpu;
		best_wall = wall < best_wall ? wall : best_wall;
	}
	printf("%.2f %.2f\n", best_cpu, best_wall);
	return 0;
}
