/* A program that uses "CUDA" (mock.h) and NVTX, for the tests of the collector: what it did is in $MOCK_TRUTH.
 *
 * guest_cuda [fork-first | late=TEXT] [WORD...], done in order, with fork-first by a child that was forked before CUDA was used, and leaves with _exit; with late
 * CUDA comes after a range, and say=TEXT:
 *   threads=N  N threads, each with nested ranges, kernels on its own stream, copies, sets and waits
 *   graph=N    a graph of three kernels captured under ranges, launched N times under others
 *   memory     allocations and frees
 *   noise=N    N calls of each function that says nothing
 *   other      device, context, streams, overhead, compilation, events
 *   say=TEXT   prints TEXT and waits for a line of input: the test goes on when it has seen what it waits for
 *   fork       a child does work=10 and leaves with _exit; its parent waits for it
 *   work=N     N kernels outside any range
 *   record=S   an event is recorded on that stream;  wait=S: the stream waits for it;  host=0: the host does
 *   call=N     the call with this number
 *   name=H     names the stream with the handle H (mock.h): "copies of H";  context=H: asks for its context
 *   profiler=N cudaProfilerStart (1) or Stop (0)
 *   raise=N    ends by this signal */
#include "mock.h"
#include "nvtx_client.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct nvtx nvtx;

static void begin_range(const char *name)
{
	nvtx_push(&nvtx, name);
	mock_range_is(name);
}

static void end_range(const char *outer)
{
	nvtx_pop(&nvtx);
	mock_range_is(outer);
}

static void one_iteration(uint32_t stream, int i)
{
	static const char *const layer[] = {"conv", "norm", "linear"};
	begin_range("step");
	for (int l = 0; l < 3; l++) {
		begin_range(layer[l]);
		mock_launch(l == 0 ? "void conv_kernel<float>(float const*)" : l == 1 ? "norm_kernel" : "void gemm_kernel(float*)", stream, 3000 + i);
		mock_launch("bias_kernel", stream, 700);
		end_range("step");
	}
	mock_memcpy(1, 4096 + (uint64_t)i, stream);
	mock_memset(512, stream);
	if (i % 4 == 0)
		mock_peer_copy(65536, stream);
	mock_sync(3, stream);
	end_range(NULL);
	mock_launch("outside_kernel", stream, 100);
}

static void *worker(void *arg)
{
	uint32_t stream = 7 + (uint32_t)(uintptr_t)arg;
	for (int i = 0; i < 20; i++)
		one_iteration(stream, i);
	return NULL;
}

static void threads(int n)
{
	pthread_t t[64];
	n = n > 64 ? 64 : n;
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)i);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void graph(int launches)
{
	struct mock_graph *g = mock_graph_begin();
	begin_range("capture");
	begin_range("layer_a");
	mock_graph_kernel(g, "graph_kernel_a", 1000);
	end_range("capture");
	begin_range("layer_b");
	mock_graph_kernel(g, "graph_kernel_b", 2000);
	end_range("capture");
	mock_graph_kernel(g, "graph_kernel_c", 3000);
	end_range(NULL);
	mock_graph_instantiate(g);
	for (int i = 0; i < launches; i++) {
		begin_range("replay");
		mock_graph_launch(g, 9);
		end_range(NULL);
	}
}

static void memory(void)
{
	begin_range("allocate");
	uint64_t a = mock_malloc(1 << 20), b = mock_malloc(1000);
	mock_free(a, 1 << 20);
	uint64_t c = mock_malloc(3 << 20);
	mock_free(b, 1000);
	mock_free(c, 3 << 20);
	mock_malloc(4096);
	end_range(NULL);
}

static void noise(int n)
{
	static const uint32_t cbid[] = {10, 11, 17, 138};
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 4; k++)
			mock_call(cbid[k]);
}

static void other(void)
{
	mock_devices(2, 3);
	mock_overhead(5 << 16, 12345);
	mock_jit(67890);
	mock_event_record(7, 77);
	for (uint32_t type = 1; type <= 4; type++)
		mock_sync(type, 8);
}

static void work(int n)
{
	for (int i = 0; i < n; i++)
		mock_launch("work_kernel", 7, 1000);
}

static void name_stream(int handle)
{
	char text[32];
	snprintf(text, sizeof text, "copies of %d", handle);
	nvtx_name_stream((void *)(intptr_t)handle, text);
}

static void child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		begin_range("in_the_child");
		name_stream(8);
		work(10);
		end_range(NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void say(const char *text)
{
	char line[64];
	printf("%s\n", text);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		exit(3);
}

static void word(const char *w)
{
	const char *value = strchr(w, '=') ? strchr(w, '=') + 1 : "";
	int n = atoi(value);
	if (strncmp(w, "threads=", 8) == 0)
		threads(n);
	else if (strncmp(w, "graph=", 6) == 0)
		graph(n);
	else if (strcmp(w, "memory") == 0)
		memory();
	else if (strncmp(w, "noise=", 6) == 0)
		noise(n);
	else if (strcmp(w, "other") == 0)
		other();
	else if (strncmp(w, "say=", 4) == 0)
		say(value);
	else if (strcmp(w, "fork") == 0)
		child();
	else if (strncmp(w, "work=", 5) == 0)
		work(n);
	else if (strncmp(w, "record=", 7) == 0)
		mock_event_record((uint32_t)n, 77);
	else if (strncmp(w, "wait=", 5) == 0 || strncmp(w, "host=", 5) == 0)
		mock_sync(w[0] == 'w' ? 2 : 1, (uint32_t)n);
	else if (strncmp(w, "call=", 5) == 0)
		mock_call((uint32_t)n);
	else if (strncmp(w, "name=", 5) == 0)
		name_stream(n);
	else if (strncmp(w, "context=", 8) == 0)
		cuStreamGetCtx((void *)(intptr_t)n, &(void *){NULL});
	else if (strncmp(w, "profiler=", 9) == 0)
		mock_profiler(n);
	else if (strncmp(w, "raise=", 6) == 0)
		raise(n);
	else
		exit(2);
}

int main(int argc, char **argv)
{
	nvtx = nvtx_find();
	bool fork_first = argc > 1 && strcmp(argv[1], "fork-first") == 0;
	if (fork_first) {
		begin_range("before");
		end_range(NULL);
	}
	bool late = argc > 1 && strncmp(argv[1], "late=", 5) == 0;
	if (late) {
		begin_range("before");
		end_range(NULL);
		say(argv[1] + 5);
	}
	pid_t pid = fork_first ? fork() : 0;
	if (pid > 0) {
		int status;
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status);
	}
	int r = cuInit(0);
	for (int i = 1 + fork_first + late; i < argc; i++)
		word(argv[i]);
	if (fork_first)
		_exit(r);
	return r;
}
