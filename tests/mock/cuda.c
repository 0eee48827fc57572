/* A driver that has no GPU: cuInit loads $CUDA_INJECTION64_PATH as the real one does, and the functions of mock.h plant events.
 *
 * MOCK_TRUTH=FILE       where each event is told
 * MOCK_CUDA_RETURN=N    what cuInit returns (100 = no device), after it has called the injected library, as the real one does */
#include "mock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { STREAMS = 64, NODES = 256 };
enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_DEVICE = 8, KIND_CONTEXT = 9, KIND_KERNEL = 10, KIND_OVERHEAD = 17,
       KIND_PEER = 22, KIND_EVENT = 36, KIND_STREAM = 37, KIND_SYNC = 38, KIND_MEMORY = 49, KIND_GRAPH = 51, KIND_JIT = 52 };
enum { CBID_MALLOC = 20, CBID_FREE = 22, CBID_MEMCPY_ASYNC = 41, CBID_MEMSET_ASYNC = 51, CBID_STREAM_SYNC = 131, CBID_EVENT_RECORD = 135,
       CBID_EVENT_SYNC = 137, CBID_STREAM_WAIT = 147, CBID_DEVICE_SYNC = 165, CBID_PROFILER_START = 171, CBID_PROFILER_STOP = 172, CBID_LAUNCH = 211, CBID_PEER_ASYNC = 161, CBID_GRAPH_LAUNCH = 311 };
enum { CBID_DRIVER_GET_VERSION = 2, CBID_DRIVER_STREAM_GET_CONTEXT = 483 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct mock_cupti *cupti;
static FILE *truth;
static uint32_t correlation;
static uint64_t free_at[STREAMS], address = 0x700000000000;
static __thread const char *range;

struct mock_graph {
	char name[NODES][64];
	int64_t ns[NODES];
	void *node[NODES], *clone[NODES];
	unsigned n;
	uint32_t id;
	struct mock_graph *older; /* the driver owns its graphs: a program may end without destroying them */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

EXPORT void mock_cuda_attach(const struct mock_cupti *c)
{
	cupti = c;
}

EXPORT int cuInit(unsigned flags)
{
	(void)flags;
	static int done;
	pthread_mutex_lock(&lock);
	int first = !done;
	done = 1;
	if (first && getenv("MOCK_TRUTH"))
		truth = fopen(getenv("MOCK_TRUTH"), "we");
	pthread_mutex_unlock(&lock);
	const char *path = getenv("CUDA_INJECTION64_PATH");
	if (first && path) {
		void *library = dlopen(path, RTLD_NOW);
		int (*start)(void) = NULL;
		if (library)
			*(void **)&start = dlsym(library, "InitializeInjection");
		if (start)
			start();
	}
	return getenv("MOCK_CUDA_RETURN") ? atoi(getenv("MOCK_CUDA_RETURN")) : 0;
}

/* What the collector itself calls of CUDA. These are traced like any other, but the truth does not tell of them. */
static void driver_call(uint32_t cbid)
{
	pthread_mutex_lock(&lock);
	struct mock_event e = {.kind = KIND_DRIVER, .cbid = cbid, .correlation = ++correlation, .thread = (uint32_t)syscall(SYS_gettid), .start = now_ns()};
	while ((e.end = now_ns()) < e.start + 100)
		;
	if (cupti)
		cupti->event(&e);
	pthread_mutex_unlock(&lock);
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = 13000;
	driver_call(CBID_DRIVER_GET_VERSION);
	return 0;
}

EXPORT int cuStreamGetCtx(void *stream, void **context)
{
	*context = (void *)(MOCK_CONTEXT + ((uintptr_t)stream >> 8));
	driver_call(CBID_DRIVER_STREAM_GET_CONTEXT);
	return 0;
}

EXPORT int cuDeviceGetCount(int *n)
{
	*n = 2;
	return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *id, int n, int device)
{
	snprintf(id, (size_t)n, "0000:%02x:00.0", 0x1a + (unsigned)device);
	return 0;
}

EXPORT void mock_range_is(const char *name)
{
	range = name;
}

static void tell(const char *what, const struct mock_event *e)
{
	if (!truth)
		return;
	fprintf(truth, "{\"what\": \"%s\", \"pid\": %d, \"start\": %llu, \"end\": %llu, \"correlation\": %u, \"device\": %u, \"context\": %u, \"stream\": %u, "
	        "\"thread\": %u, \"cbid\": %u, \"name\": \"%s\", \"grid\": [%d, %d, %d], \"block\": [%d, %d, %d], \"registers\": %d, \"shared\": %d, "
	        "\"bytes\": %llu, \"address\": %llu, \"from\": %u, \"to\": %u, \"copy\": %u, \"type\": %u, \"event\": %u, \"node\": %llu, \"graph\": %u, \"range\": \"%s\"}\n",
	        what, (int)getpid(), (unsigned long long)e->start, (unsigned long long)e->end, e->correlation, e->device, e->context, e->stream, e->thread, e->cbid,
	        e->name ? e->name : "", e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1], e->block[2], e->registers,
	        e->fixed_shared + e->dynamic_shared, (unsigned long long)e->bytes, (unsigned long long)e->address, e->from, e->to, e->copy, e->type, e->event,
	        (unsigned long long)e->node, e->graph, range ? range : "");
	fflush(truth);
}

static void plant(const char *what, const struct mock_event *e)
{
	tell(what, e);
	if (cupti)
		cupti->event(e);
}

/* The API call that does it, `ns` long. With the lock held. */
static struct mock_event call(uint32_t cbid, uint64_t ns)
{
	struct mock_event e = {.kind = KIND_RUNTIME, .cbid = cbid, .correlation = ++correlation, .thread = (uint32_t)syscall(SYS_gettid)};
	e.start = now_ns();
	e.end = e.start + ns;
	while (now_ns() < e.end)
		;
	plant("api", &e);
	return e;
}

/* Work of that call on a stream, after what is there already. */
static struct mock_event work(const struct mock_event *api, uint32_t kind, uint32_t stream, uint64_t ns)
{
	struct mock_event e = {.kind = kind, .correlation = api->correlation, .context = 1, .stream = stream, .thread = api->thread};
	uint64_t *end = &free_at[stream % STREAMS];
	e.start = api->end + 500 > *end ? api->end + 500 : *end;
	e.end = e.start + ns;
	*end = e.end;
	return e;
}

EXPORT uint32_t mock_launch_grid(const char *name, uint32_t stream, int64_t ns, int32_t grid, int32_t block)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_LAUNCH, 400), e = work(&api, KIND_KERNEL, stream, (uint64_t)ns);
	e.name = name;
	for (int k = 0; k < 3; k++) {
		e.grid[k] = grid ? (k ? 1 : grid) : 1 + (int)((api.correlation * 7 + (uint32_t)k) % 1000);
		e.block[k] = block ? (k ? 1 : block) : 32 >> k;
	}
	e.registers = 16 + (int)(api.correlation % 200);
	e.fixed_shared = 1024;
	e.dynamic_shared = (int)(api.correlation % 5) * 4096;
	plant("kernel", &e);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}

EXPORT uint32_t mock_launch(const char *name, uint32_t stream, int64_t ns)
{
	return mock_launch_grid(name, stream, ns, 0, 0);
}

/* Until what was launched on the stream is over, by the clock of the host. */
EXPORT void mock_wait(uint32_t stream)
{
	pthread_mutex_lock(&lock);
	uint64_t end = free_at[stream % STREAMS];
	pthread_mutex_unlock(&lock);
	for (uint64_t now; (now = now_ns()) < end;)
		nanosleep(&(struct timespec){.tv_nsec = end - now < 1000000 ? (long)(end - now) : 1000000}, NULL);
}

EXPORT uint32_t mock_memcpy(uint32_t copy_kind, uint64_t bytes, uint32_t stream)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_MEMCPY_ASYNC, 600), e = work(&api, KIND_MEMCPY, stream, bytes / 16 + 100);
	e.bytes = bytes;
	e.copy = copy_kind;
	e.from = copy_kind == 1 ? 2 : 3;
	e.to = copy_kind == 1 ? 3 : 1;
	plant("memcpy", &e);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}

EXPORT uint32_t mock_peer_copy(uint64_t bytes, uint32_t stream)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_PEER_ASYNC, 700), e = work(&api, KIND_PEER, stream, bytes / 64 + 100);
	e.bytes = bytes;
	e.copy = 10;
	e.from = e.to = 3;
	plant("memcpy", &e);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}

EXPORT uint32_t mock_memset(uint64_t bytes, uint32_t stream)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_MEMSET_ASYNC, 300), e = work(&api, KIND_MEMSET, stream, bytes / 128 + 50);
	e.bytes = bytes;
	e.from = 3;
	plant("memset", &e);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}

EXPORT uint32_t mock_sync(uint32_t type, uint32_t stream)
{
	static const uint32_t cbid[] = {0, CBID_EVENT_SYNC, CBID_STREAM_WAIT, CBID_STREAM_SYNC, CBID_DEVICE_SYNC};
	pthread_mutex_lock(&lock);
	struct mock_event api = call(cbid[type], 5000);
	struct mock_event e = {.kind = KIND_SYNC, .start = api.start + 100, .end = api.end - 100, .correlation = api.correlation, .context = 1,
	                       .stream = type == 1 || type == 4 ? UINT32_MAX : stream, .type = type, .event = type <= 2 ? 77 : UINT32_MAX};
	plant("sync", &e);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}

EXPORT void mock_event_record(uint32_t stream, uint32_t event)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_EVENT_RECORD, 200);
	struct mock_event e = {.kind = KIND_EVENT, .correlation = api.correlation, .context = 1, .stream = stream, .event = event, .start = api.start, .end = api.end};
	plant("event", &e);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_call(uint32_t cbid)
{
	pthread_mutex_lock(&lock);
	call(cbid, 50);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_profiler(int start)
{
	uint32_t cbid = start ? CBID_PROFILER_START : CBID_PROFILER_STOP;
	struct mock_event e = {.start = now_ns()};
	if (cupti)
		cupti->call(cbid, 0);
	if (start && cupti) /* the window lies between the end of one and the beginning of the other */
		cupti->call(cbid, 1);
	if (start)
		e.start = now_ns();
	else if (cupti)
		cupti->call(cbid, 1);
	pthread_mutex_lock(&lock);
	tell("profiler", &e);
	pthread_mutex_unlock(&lock);
}

static void memory(uint32_t cbid, uint32_t operation, uint64_t at, uint64_t bytes)
{
	struct mock_event api = call(cbid, 900);
	struct mock_event e = {.kind = KIND_MEMORY, .correlation = api.correlation, .context = 1, .start = api.end, .end = api.end, .bytes = bytes,
	                       .address = at, .from = 3, .type = operation, .stream = 7};
	plant("memory", &e);
}

EXPORT uint64_t mock_malloc(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	uint64_t at = address;
	address += (bytes + 511) / 512 * 512;
	memory(CBID_MALLOC, 1, at, bytes);
	pthread_mutex_unlock(&lock);
	return at;
}

EXPORT void mock_free(uint64_t at, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	memory(CBID_FREE, 2, at, bytes);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_overhead(uint32_t overhead_kind, int64_t ns)
{
	pthread_mutex_lock(&lock);
	struct mock_event e = {.kind = KIND_OVERHEAD, .type = overhead_kind, .start = now_ns(), .thread = (uint32_t)syscall(SYS_gettid)};
	e.end = e.start + (uint64_t)ns;
	plant("overhead", &e);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_jit(int64_t ns)
{
	pthread_mutex_lock(&lock);
	struct mock_event e = {.kind = KIND_JIT, .start = now_ns(), .correlation = correlation, .thread = (uint32_t)syscall(SYS_gettid)};
	e.end = e.start + (uint64_t)ns;
	plant("jit", &e);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_devices(uint32_t devices, uint32_t streams)
{
	pthread_mutex_lock(&lock);
	for (uint32_t d = 0; d < devices; d++) {
		struct mock_event e = {.kind = KIND_DEVICE, .device = d, .name = "NVIDIA H200", .bytes = 150754820096};
		plant("device", &e);
	}
	struct mock_event context = {.kind = KIND_CONTEXT, .context = 1, .stream = 7};
	plant("context", &context);
	for (uint32_t s = 0; s < streams; s++) {
		struct mock_event e = {.kind = KIND_STREAM, .context = 1, .stream = 7 + s};
		plant("stream", &e);
	}
	pthread_mutex_unlock(&lock);
}

EXPORT struct mock_graph *mock_graph_begin(void)
{
	static struct mock_graph *newest;
	struct mock_graph *g = calloc(1, sizeof *g);
	pthread_mutex_lock(&lock);
	g->id = newest ? newest->id + 2 : 2;
	g->older = newest;
	newest = g;
	pthread_mutex_unlock(&lock);
	return g;
}

EXPORT void mock_graph_kernel(struct mock_graph *g, const char *name, int64_t ns)
{
	unsigned i = g->n++;
	snprintf(g->name[i], sizeof g->name[i], "%s", name);
	g->ns[i] = ns;
	g->node[i] = malloc(1);
	if (cupti)
		cupti->graph_node(g->node[i], NULL);
	pthread_mutex_lock(&lock);
	struct mock_event e = {.name = g->name[i], .node = cupti ? cupti->node_id(g->node[i]) : 0, .graph = g->id, .start = now_ns()};
	tell("node", &e);
	pthread_mutex_unlock(&lock);
}

EXPORT void mock_graph_instantiate(struct mock_graph *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		g->clone[i] = malloc(1);
		if (cupti)
			cupti->graph_node(g->clone[i], g->node[i]);
	}
}

EXPORT uint32_t mock_graph_launch(struct mock_graph *g, uint32_t stream)
{
	pthread_mutex_lock(&lock);
	struct mock_event api = call(CBID_GRAPH_LAUNCH, 2000), whole = {0};
	for (unsigned i = 0; i < g->n; i++) {
		struct mock_event e = work(&api, KIND_KERNEL, stream, (uint64_t)g->ns[i]);
		e.name = g->name[i];
		e.grid[0] = e.grid[1] = e.grid[2] = e.block[0] = e.block[1] = e.block[2] = 1;
		e.graph = g->id + 1;
		e.node = cupti ? cupti->node_id(g->clone[i]) : 0;
		plant("kernel", &e);
		whole.start = i ? whole.start : e.start;
		whole.end = e.end;
	}
	whole.kind = KIND_GRAPH;
	whole.correlation = api.correlation;
	whole.graph = g->id + 1;
	whole.context = 1;
	whole.stream = stream;
	plant("graph", &whole);
	pthread_mutex_unlock(&lock);
	return api.correlation;
}
