/* A program that uses a GPU through the CUDA driver alone, and NVTX, for tools/gpu-check. What it did stands in $GPU_TRUTH, a JSON object a line.
 *
 * gpu_guest [WORD...], done in order:
 *   device       what the device says of itself
 *   threads=N    N threads, each with ranges around kernels, copies, sets and waits on a stream of its own
 *   memory       allocations and frees
 *   graph=N      a graph of three kernels captured under ranges, launched N times under others
 *   launches=N   prints what one of N launches of an empty kernel costs the host: "launch_ns X"
 *   spin=N       N kernels of 1 ms, waited for: prints "spin_ns X" for all
 *   own=N        N captures of its own (opscope/capture.h), by the library $GPU_LIBRARY in folders 1, 2, ... of $GPU_OWN, each with threads=1, and threads=1 outside
 *   fork         a child that opens ranges and leaves with _exit, after CUDA was used
 *   sleep=MS     waits
 *   raise=N      ends by that signal;  quit=N ends by _exit with that status;  exit=N by exit
 * Ends with 77 when there is no driver or no device. */
#include "../tests/mock/nvtx_client.h"
#include "opscope/capture.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NO_GPU = 77, ITERATIONS = 20, BYTES = 1 << 20 };

typedef struct opaque *handle;
#define CUDA_CALLS(X)                                                                                   \
	X(cuInit, (unsigned))                                                                           \
	X(cuDeviceGet, (int *, int))                                                                    \
	X(cuDeviceGetName, (char *, int, int))                                                          \
	X(cuDeviceGetAttribute, (int *, int, int))                                                      \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                                                    \
	X(cuCtxSetCurrent, (handle))                                                                    \
	X(cuModuleLoadData, (handle *, const void *))                                                   \
	X(cuModuleGetFunction, (handle *, handle, const char *))                                        \
	X(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                          \
	X(cuMemFree_v2, (uint64_t))                                                                     \
	X(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, handle))                               \
	X(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, handle))                                     \
	X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, handle))                                   \
	X(cuStreamCreate, (handle *, unsigned))                                                         \
	X(cuStreamSynchronize, (handle))                                                                \
	X(cuCtxSynchronize, (void))                                                                     \
	X(cuStreamBeginCapture_v2, (handle, int))                                                       \
	X(cuStreamEndCapture, (handle, handle *))                                                       \
	X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                          \
	X(cuGraphLaunch, (handle, handle))

static struct {
#define CALL_(name, arguments) int (*name) arguments;
	CUDA_CALLS(CALL_)
} cu;

static struct nvtx nvtx;
static handle context, spin;
static FILE *truth;
static __thread const char *range = "";

/* Waits for the nanoseconds of its argument, by the device's own clock. */
#define PTX(version, target)                                                                            \
	".version " version "\n.target " target "\n.address_size 64\n"                                  \
	".visible .entry opscope_spin(.param .u64 wanted)\n{\n"                                         \
	".reg .u64 %rd<4>;\n.reg .pred %p<2>;\n"                                                        \
	"ld.param.u64 %rd1, [wanted];\nmov.u64 %rd2, %globaltimer;\n"                                   \
	"AGAIN:\nmov.u64 %rd3, %globaltimer;\nsub.u64 %rd3, %rd3, %rd2;\n"                              \
	"setp.lt.u64 %p1, %rd3, %rd1;\n@%p1 bra AGAIN;\nret;\n}\n"
static const char *const ptx[] = {PTX("6.3", "sm_75"), PTX("6.0", "sm_50")};

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "gpu_guest: %s: CUDA error %d\n", what, error);
	exit(error == 100 || error == 999 ? NO_GPU : 1);
}

static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		fprintf(stderr, "gpu_guest: no libcuda.so.1\n");
		exit(NO_GPU);
	}
#define FIND_(name, arguments)                             \
	*(void **)&cu.name = dlsym(driver, #name);         \
	if (!cu.name)                                      \
		must(1, #name);
	CUDA_CALLS(FIND_)
	int device;
	handle module;
	must(cu.cuInit(0), "cuInit");
	must(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	if (cu.cuModuleLoadData(&module, ptx[0]))
		must(cu.cuModuleLoadData(&module, ptx[1]), "cuModuleLoadData");
	must(cu.cuModuleGetFunction(&spin, module, "opscope_spin"), "cuModuleGetFunction");
	truth = getenv("GPU_TRUTH") ? fopen(getenv("GPU_TRUTH"), "we") : NULL;
}

static void tell(const char *what, int64_t before, int64_t after, uint64_t value, unsigned grid, uint64_t ns)
{
	if (truth)
		fprintf(truth, "{\"what\": \"%s\", \"before\": %lld, \"after\": %lld, \"value\": %llu, \"grid\": %u, \"ns\": %llu, \"thread\": %ld, \"range\": \"%s\"}\n",
		        what, (long long)before, (long long)after, (unsigned long long)value, grid, (unsigned long long)ns, syscall(SYS_gettid), range);
}

static void begin(const char *name)
{
	nvtx_push(&nvtx, name);
	range = name;
}

static void end(const char *outer)
{
	nvtx_pop(&nvtx);
	range = outer;
}

/* Grids tell launches apart: each is another one. */
static void launch(handle stream, uint64_t ns)
{
	static unsigned launches;
	unsigned grid = __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
	void *arguments[] = {&ns};
	int64_t before = now_ns();
	must(cu.cuLaunchKernel(spin, grid, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
	tell("kernel", before, now_ns(), 0, grid, ns);
}

static void *worker(void *number)
{
	static char host[BYTES];
	static const char *const layer[] = {"conv", "norm", "linear"};
	size_t bytes = 4096 + 256 * (size_t)(uintptr_t)number;
	handle stream;
	uint64_t memory;
	must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
	must(cu.cuMemAlloc_v2(&memory, BYTES), "cuMemAlloc");
	for (int i = 0; i < ITERATIONS; i++) {
		begin("step");
		for (int l = 0; l < 3; l++) {
			begin(layer[l]);
			launch(stream, 20000 * (uint64_t)(l + 1));
			end("step");
		}
		int64_t before = now_ns();
		must(cu.cuMemcpyHtoDAsync_v2(memory, host, bytes, stream), "cuMemcpyHtoDAsync");
		tell("upload", before, now_ns(), bytes, 0, 0);
		must(cu.cuMemsetD8Async(memory, 7, bytes * 2, stream), "cuMemsetD8Async");
		tell("set", before, now_ns(), bytes * 2, 0, 0);
		must(cu.cuMemcpyDtoHAsync_v2(host, memory, bytes * 3, stream), "cuMemcpyDtoHAsync");
		tell("download", before, now_ns(), bytes * 3, 0, 0);
		before = now_ns();
		must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
		tell("wait", before, now_ns(), 0, 0, 0);
		end("");
	}
	must(cu.cuMemFree_v2(memory), "cuMemFree");
	return NULL;
}

static void threads(int n)
{
	pthread_t t[16];
	n = n > 16 ? 16 : n;
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)i);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* What stands between two lines "own" in the truth belongs to that capture; 0: to none. */
static void own(int captures)
{
	const char *library = getenv("GPU_LIBRARY"), *folder = getenv("GPU_OWN");
	char path[4096];
	for (int i = 1; library && folder && i <= captures; i++) {
		const struct opscope_capture_options o = {.bytes = sizeof o, .dir = path};
		snprintf(path, sizeof path, "%s/%d", folder, i);
		must(-opscope_capture_begin(library, &o), "opscope_capture_begin");
		tell("own", 0, 0, (uint64_t)i, 0, 0);
		threads(1);
		must(-opscope_capture_end(library), "opscope_capture_end");
		tell("own", 0, 0, 0, 0, 0);
		threads(1);
	}
}

static void device(void)
{
	enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 };
	char name[128] = "";
	int sms = 0, major = 0, minor = 0;
	cu.cuDeviceGetName(name, sizeof name, 0);
	cu.cuDeviceGetAttribute(&sms, MULTIPROCESSORS, 0);
	cu.cuDeviceGetAttribute(&major, MAJOR, 0);
	cu.cuDeviceGetAttribute(&minor, MINOR, 0);
	if (truth)
		fprintf(truth, "{\"what\": \"device\", \"name\": \"%s\", \"sms\": %d, \"major\": %d, \"minor\": %d}\n", name, sms, major, minor);
}

static void memory(void)
{
	uint64_t a, b;
	must(cu.cuMemAlloc_v2(&a, 64 << 20), "cuMemAlloc");
	must(cu.cuMemAlloc_v2(&b, 32 << 20), "cuMemAlloc");
	tell("allocated", 0, 0, 96 << 20, 0, 0);
	must(cu.cuMemFree_v2(a), "cuMemFree");
	must(cu.cuMemFree_v2(b), "cuMemFree");
}

static void graph(int n)
{
	handle stream, g, exec;
	must(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
	begin("capture");
	must(cu.cuStreamBeginCapture_v2(stream, 1), "cuStreamBeginCapture");
	begin("layer_a");
	launch(stream, 20000);
	end("capture");
	begin("layer_b");
	launch(stream, 20000);
	end("capture");
	must(cu.cuStreamEndCapture(stream, &g), "cuStreamEndCapture");
	end("");
	must(cu.cuGraphInstantiateWithFlags(&exec, g, 0), "cuGraphInstantiate");
	for (int i = 0; i < n; i++) {
		begin("replay");
		must(cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
		tell("graph", 0, 0, 2, 0, 0);
		end("");
	}
	must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static int64_t host_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The least of several rounds, so that other work on the machine matters little. */
static void timed(const char *name, int n, uint64_t ns)
{
	int64_t least = INT64_MAX;
	void *arguments[] = {&ns};
	for (int round = 0; round < 5; round++) {
		must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		int64_t start = host_ns();
		for (int i = 0; i < n; i++)
			must(cu.cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL), "cuLaunchKernel");
		if (ns)
			must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		int64_t took = host_ns() - start;
		least = took < least ? took : least;
	}
	printf("%s %.1f\n", name, (double)least / (ns ? 1 : n));
}

static void child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		begin("in_the_child");
		end("");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void word(const char *w)
{
	const char *equal = strchr(w, '=');
	size_t n = equal ? (size_t)(equal - w) : strlen(w);
	int v = equal ? atoi(equal + 1) : 0;
#define IS(text) (n == sizeof text - 1 && memcmp(w, text, n) == 0)
	if (IS("device"))
		device();
	else if (IS("threads"))
		threads(v);
	else if (IS("memory"))
		memory();
	else if (IS("graph"))
		graph(v);
	else if (IS("launches"))
		timed("launch_ns", v, 0);
	else if (IS("spin"))
		timed("spin_ns", v, 1000000);
	else if (IS("own"))
		own(v);
	else if (IS("fork"))
		child();
	else if (IS("sleep"))
		usleep((unsigned)v * 1000);
	else if (IS("raise"))
		raise(v);
	else if (IS("quit"))
		_exit(v);
	else if (IS("exit"))
		exit(v);
	else
		exit(2);
	if (truth)
		fflush(truth);
}

int main(int argc, char **argv)
{
	nvtx = nvtx_find();
	load();
	for (int i = 1; i < argc; i++)
		word(argv[i]);
	must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	return 0;
}
