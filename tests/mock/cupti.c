/* A mock of libcupti, one library a version of its records (MOCK_LAYOUTS is made by layouts.py from tests/data/cupti_layouts.json). It
 * fills every byte that it has no value for with 0xEE, writes what the mock driver plants, and answers as the real one does.
 *
 * MOCK_CUPTI holds words, separated by commas:
 *   busy          another tool has subscribed (39 and its name);  limit: the same in CUPTI of CUDA 10's time (12)
 *   uninitialised all set-up fails with 15;  unprivileged: with 35
 *   refuse=KIND   that kind cannot be enabled (error 7), so that the set-up fails in part
 *   steal=N       after N events another client registers its own buffers, as Kineto does without having subscribed
 *   broken        among the records are unknown kinds, ends before starts, kernels without names and a buffer that breaks off
 *   small         buffers hold three records at most
 *   flood=N       cuptiActivityFlushAll also hands over N records of API calls and N of kernels, and $MOCK_FLOOD_OUT is then told how
 *                 much CPU time the collector took for one: "records N ns_per_record X"
 *   pthreads      threads have the numbers of pthread_self, whatever was asked for
 *   lossy         every tenth record of a kind is left out
 *   skewed        times of the device are 1 ms early
 *   hang          calls in a process that did not subscribe itself never return, as the real ones in a forked child
 * $MOCK_CALLS is told of each call that changes what CUPTI does, one a line. */
#include "mock.h"
#include MOCK_LAYOUTS

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { KINDS = 64, OK = 0, BUFFER_HALVES = 2 };
typedef void requested_fn(uint8_t **buffer, size_t *size, size_t *max);
typedef void completed_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void callback_fn(void *userdata, uint32_t domain, uint32_t cbid, const void *data);

/* CPU-side records in one, those of the device in the other, as CUPTI keeps them apart. */
static struct half { uint8_t *p; size_t size, used, max, n; bool ours; } half[BUFFER_HALVES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static requested_fn *requested;
static completed_fn *completed;
static callback_fn *callback;
static bool enabled[KINDS], callback_on[KINDS], call_on[256], dropped_call[1024], system_threads, stolen;
static uint64_t events, nodes, seen[KINDS]; /* seen: of a kind */
static pid_t owner;
static struct { void *node; uint64_t id; } node_id[4096];

static const char *mode(const char *word)
{
	const char *m = getenv("MOCK_CUPTI");
	size_t n = strlen(word);
	for (; m && *m; m = strchr(m, ',') ? strchr(m, ',') + 1 : NULL)
		if (strncmp(m, word, n) == 0 && (m[n] == '=' || m[n] == ',' || m[n] == 0))
			return m[n] == '=' ? m + n + 1 : m + n;
	return NULL;
}

static void told(const char *fmt, uint32_t a, uint32_t b)
{
	const char *path = getenv("MOCK_CALLS");
	FILE *f = path ? fopen(path, "ae") : NULL;
	if (!f)
		return;
	fprintf(f, fmt, a, b);
	fclose(f);
}

static void in_owner_only(void)
{
	while (mode("hang") && owner && getpid() != owner)
		pause();
}

static int set_up_error(void)
{
	return mode("uninitialised") ? 15 : mode("unprivileged") ? 35 : OK;
}

#define PUT(r, record, field, value) put(r, AT_##record##_##field, WIDTH_##record##_##field, (uint64_t)(value))
static void put(uint8_t *r, int at, int width, uint64_t v)
{
	if (at >= 0)
		memcpy(r + at, &v, (size_t)width);
}

/* A forced flush hands over what there is. */
static void hand_over(struct half *h)
{
	if (!h->p)
		return;
	size_t valid = h->used;
	uint8_t *p = h->p;
	h->p = NULL;
	if (h->ours && !stolen && completed)
		completed(NULL, 0, p, h->size, valid);
	else if (!h->ours)
		free(p);
}

static uint8_t *room(unsigned which, size_t bytes)
{
	struct half *h = &half[which];
	if (h->p && (h->used + bytes > h->size || (h->max && h->n >= h->max)))
		hand_over(h);
	if (!h->p) {
		*h = (struct half){.ours = !stolen};
		if (stolen) {
			h->size = 1 << 20;
			h->p = malloc(h->size);
		} else if (requested) {
			requested(&h->p, &h->size, &h->max);
		}
		if (!h->p || h->size < bytes)
			return NULL;
		if (mode("small"))
			h->max = 3;
	}
	uint8_t *r = h->p + h->used;
	h->used += bytes;
	h->n++;
	memset(r, 0xEE, bytes);
	return r;
}

static uint32_t thread_id(const struct mock_event *e)
{
	return system_threads && !mode("pthreads") ? e->thread : (uint32_t)(uintptr_t)pthread_self();
}

/* One event in the layout of this version. */
static void write_record(const struct mock_event *e)
{
	uint8_t *r;
	switch (e->kind) {
	case 4:
	case 5:
		if (!(r = room(0, BYTES_api)))
			return;
		PUT(r, api, cbid, e->cbid);
		PUT(r, api, start, e->start);
		PUT(r, api, end, e->end);
		PUT(r, api, processId, getpid());
		PUT(r, api, threadId, thread_id(e));
		PUT(r, api, correlationId, e->correlation);
		PUT(r, api, returnValue, e->result);
		break;
	case 10:
		if (!(r = room(1, BYTES_kernel)))
			return;
		PUT(r, kernel, registersPerThread, e->registers);
		PUT(r, kernel, start, e->start);
		PUT(r, kernel, end, e->end);
		PUT(r, kernel, deviceId, e->device);
		PUT(r, kernel, contextId, e->context);
		PUT(r, kernel, streamId, e->stream);
		PUT(r, kernel, gridX, e->grid[0]);
		PUT(r, kernel, gridY, e->grid[1]);
		PUT(r, kernel, gridZ, e->grid[2]);
		PUT(r, kernel, blockX, e->block[0]);
		PUT(r, kernel, blockY, e->block[1]);
		PUT(r, kernel, blockZ, e->block[2]);
		PUT(r, kernel, staticSharedMemory, e->fixed_shared);
		PUT(r, kernel, dynamicSharedMemory, e->dynamic_shared);
		PUT(r, kernel, localMemoryPerThread, 48);
		PUT(r, kernel, clusterX, 2);
		PUT(r, kernel, clusterY, 1);
		PUT(r, kernel, clusterZ, 1);
		PUT(r, kernel, isDeviceLaunched, 0);
		PUT(r, kernel, correlationId, e->correlation);
		PUT(r, kernel, name, (uintptr_t)e->name);
		PUT(r, kernel, graphNodeId, e->node);
		PUT(r, kernel, graphId, e->graph);
		break;
#define COPY(record)                                        \
		if (!(r = room(1, BYTES_##record)))         \
			return;                             \
		PUT(r, record, bytes, e->bytes);            \
		PUT(r, record, start, e->start);            \
		PUT(r, record, end, e->end);                \
		PUT(r, record, deviceId, e->device);        \
		PUT(r, record, contextId, e->context);      \
		PUT(r, record, streamId, e->stream);        \
		PUT(r, record, correlationId, e->correlation); \
		PUT(r, record, graphNodeId, e->node);       \
		PUT(r, record, graphId, e->graph);
	case 1:
		COPY(memcpy)
		PUT(r, memcpy, copyKind, e->copy);
		PUT(r, memcpy, srcKind, e->from);
		PUT(r, memcpy, dstKind, e->to);
		PUT(r, memcpy, flags, 1);
		break;
	case 22:
		COPY(peer)
		PUT(r, peer, copyKind, e->copy);
		PUT(r, peer, srcKind, e->from);
		PUT(r, peer, dstKind, e->to);
		PUT(r, peer, flags, 1);
		PUT(r, peer, srcDeviceId, 0);
		PUT(r, peer, dstDeviceId, 1);
		break;
	case 2:
		COPY(memset)
		PUT(r, memset, memoryKind, e->from);
		PUT(r, memset, value, 7);
		break;
	case 38:
		if (!(r = room(0, BYTES_sync)))
			return;
		PUT(r, sync, type, e->type);
		PUT(r, sync, start, e->start);
		PUT(r, sync, end, e->end);
		PUT(r, sync, correlationId, e->correlation);
		PUT(r, sync, contextId, e->context);
		PUT(r, sync, streamId, e->stream);
		PUT(r, sync, cudaEventId, e->event);
		break;
	case 36:
		if (!(r = room(0, BYTES_event)))
			return;
		PUT(r, event, correlationId, e->correlation);
		PUT(r, event, contextId, e->context);
		PUT(r, event, streamId, e->stream);
		PUT(r, event, eventId, e->event);
		break;
	case 17:
		if (!(r = room(0, BYTES_overhead)))
			return;
		PUT(r, overhead, overheadKind, e->type);
		PUT(r, overhead, objectKind, 2);
		put(r, AT_overhead_objectId, 4, (uint64_t)getpid());
		put(r, AT_overhead_objectId + 4, 4, thread_id(e));
		PUT(r, overhead, start, e->start);
		PUT(r, overhead, end, e->end);
		break;
	case 8:
		if (!(r = room(0, BYTES_device)))
			return;
		PUT(r, device, globalMemoryBandwidth, 4916);
		PUT(r, device, globalMemorySize, e->bytes);
		PUT(r, device, numThreadsPerWarp, 32);
		PUT(r, device, numMultiprocessors, 132);
		PUT(r, device, maxWarpsPerMultiprocessor, 64);
		PUT(r, device, computeCapabilityMajor, 9);
		PUT(r, device, computeCapabilityMinor, 0);
		PUT(r, device, id, e->device);
		PUT(r, device, coreClockRate, 1980000);
		for (int k = 0; k < 16; k++) /* as NVML says it */
			put(r, AT_device_uuid + k, 1, k < 15 ? (uint64_t)k : e->device);
		PUT(r, device, name, (uintptr_t)e->name);
		break;
	case 9:
		if (!(r = room(0, BYTES_context)))
			return;
		PUT(r, context, contextId, e->context);
		PUT(r, context, deviceId, e->device);
		PUT(r, context, nullStreamId, e->stream);
		break;
	case 37:
		if (!(r = room(0, BYTES_stream)))
			return;
		PUT(r, stream, contextId, e->context);
		PUT(r, stream, streamId, e->stream);
		PUT(r, stream, priority, 0);
		PUT(r, stream, flag, 1);
		break;
	case 49:
		if (!(r = room(0, BYTES_memory)))
			return;
		PUT(r, memory, memoryOperationType, e->type);
		PUT(r, memory, memoryKind, e->from);
		PUT(r, memory, correlationId, e->correlation);
		PUT(r, memory, address, e->address);
		PUT(r, memory, bytes, e->bytes);
		PUT(r, memory, timestamp, e->start);
		PUT(r, memory, processId, getpid());
		PUT(r, memory, deviceId, e->device);
		PUT(r, memory, contextId, e->context);
		PUT(r, memory, streamId, e->stream);
		PUT(r, memory, name, 0);
		break;
	case 51:
		if (!BYTES_graph || !(r = room(1, BYTES_graph)))
			return;
		PUT(r, graph, correlationId, e->correlation);
		PUT(r, graph, start, e->start);
		PUT(r, graph, end, e->end);
		PUT(r, graph, deviceId, e->device);
		PUT(r, graph, graphId, e->graph);
		PUT(r, graph, contextId, e->context);
		PUT(r, graph, streamId, e->stream);
		break;
	case 52:
		if (!BYTES_jit || !(r = room(0, BYTES_jit)))
			return;
		PUT(r, jit, jitEntryType, 1);
		PUT(r, jit, jitOperationType, 1);
		PUT(r, jit, deviceId, e->device);
		PUT(r, jit, start, e->start);
		PUT(r, jit, end, e->end);
		PUT(r, jit, correlationId, e->correlation);
		break;
	default:
		if (!(r = room(0, 24))) /* a kind that no version has */
			return;
	}
	memcpy(r, &e->kind, 4);
}

static size_t bytes_of(uint32_t kind)
{
	static const uint16_t bytes[KINDS] = {[1] = BYTES_memcpy, [2] = BYTES_memset, [4] = BYTES_api, [5] = BYTES_api, [8] = BYTES_device,
		[9] = BYTES_context, [10] = BYTES_kernel, [17] = BYTES_overhead, [22] = BYTES_peer, [36] = BYTES_event, [37] = BYTES_stream,
		[38] = BYTES_sync, [49] = BYTES_memory, [50] = BYTES_pool, [51] = BYTES_graph, [52] = BYTES_jit};
	return kind < KINDS && bytes[kind] ? bytes[kind] : 24;
}

/* What must not upset the collector. */
static void plant_broken(const struct mock_event *like)
{
	struct mock_event e = *like;
	e.kind = 63;
	write_record(&e);
	e.kind = 10;
	e.name = NULL;
	write_record(&e);
	e.end = e.start - 1;
	e.name = "ends_before_it_starts";
	write_record(&e);
	e.start = e.end = 0;
	e.name = "never_ended";
	write_record(&e);
	e.start = UINT64_MAX - 5;
	e.end = UINT64_MAX;
	e.name = "at_the_end_of_time";
	write_record(&e);
	e.start = e.end = 12345;
	e.name = "counted_in_ticks";
	write_record(&e);
	e.kind = 5;
	write_record(&e);
}

static void on_event(const struct mock_event *e)
{
	pthread_mutex_lock(&lock);
	const char *steal = mode("steal");
	if (steal && events == strtoull(steal, NULL, 10))
		stolen = true;
	bool wanted = e->kind < KINDS && enabled[e->kind] && !(e->kind == 5 && e->cbid < 1024 && dropped_call[e->cbid]);
	/* While whole graphs are recorded, their nodes are not. */
	wanted &= !(e->kind == 10 && e->node && enabled[51]);
	struct mock_event early = *e;
	if (mode("skewed") && (e->kind == 10 || e->kind <= 2))
		early.start -= 1000000, early.end -= 1000000;
	if (wanted) {
		events++;
		if (!mode("lossy") || ++seen[e->kind] % 10)
			write_record(&early);
		if (e->kind == 10 && mode("broken"))
			plant_broken(e);
	}
	pthread_mutex_unlock(&lock);
}

/* CUpti_ResourceData, and the CUpti_GraphData that its descriptor points to */
struct resource_data {
	void *context, *handle, *descriptor;
};
struct graph_data {
	void *graph, *original_graph, *node, *original_node;
	int node_type;
	void *dependency, *exec;
};

static uint64_t on_node_id(void *node)
{
	for (uint64_t i = 0; i < nodes; i++)
		if (node_id[i].node == node)
			return node_id[i].id;
	return 0;
}

static void on_graph_node(void *node, void *original)
{
	pthread_mutex_lock(&lock);
	if (nodes < sizeof node_id / sizeof node_id[0]) {
		node_id[nodes].node = node;
		node_id[nodes].id = ((uint64_t)7 << 32) + nodes;
		nodes++;
	}
	pthread_mutex_unlock(&lock);
	uint32_t cbid = original ? 20 : 13;
	struct graph_data d = {.node = node, .original_node = original};
	struct resource_data r = {.descriptor = &d};
	if (callback && callback_on[cbid])
		callback(NULL, 3, cbid, &r);
}

static void on_call(uint32_t cbid, uint32_t site)
{
	uint32_t data[16] = {site}; /* CUpti_CallbackData begins with it */
	if (callback && cbid < sizeof call_on && call_on[cbid])
		callback(NULL, 2, cbid, data);
}

static const struct mock_cupti self = {on_event, on_graph_node, on_node_id, on_call};

EXPORT int cuptiGetVersion(uint32_t *version)
{
	*version = MOCK_VERSION;
	return OK;
}

EXPORT int cuptiGetTimestamp(uint64_t *ns)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return OK;
}

EXPORT int cuptiGetResultString(int result, const char **text)
{
	*text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : result == 15 ? "CUPTI_ERROR_NOT_INITIALIZED" :
	        result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : result == 7 ? "CUPTI_ERROR_INVALID_OPERATION" : "CUPTI_ERROR_UNKNOWN";
	return OK;
}

EXPORT int cuptiSubscribe(void **subscriber, callback_fn *fn, void *userdata)
{
	(void)userdata;
	in_owner_only();
	if (set_up_error())
		return set_up_error();
	if (mode("busy") || mode("limit"))
		return mode("busy") ? 39 : 12;
	if (callback)
		return 39;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void (*attach)(const struct mock_cupti *) = NULL;
	if (driver)
		*(void **)&attach = dlsym(driver, "mock_cuda_attach");
	if (attach)
		attach(&self);
	callback = fn;
	owner = getpid();
	*subscriber = &callback;
	told("subscribe\n", 0, 0);
	return OK;
}

#if defined(MOCK_SUBSCRIBE_V2)
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

EXPORT int cuptiSubscribe_v2(void **subscriber, callback_fn *fn, void *userdata, struct subscriber_params *p)
{
	int r = p && p->size != sizeof *p ? 1 : cuptiSubscribe(subscriber, fn, userdata);
	if (r == 39 && p && p->old_name && p->old_size >= 64)
		snprintf(p->old_name, p->old_size, "CUPTI for the mock");
	return r;
}
#endif

EXPORT int cuptiUnsubscribe(void *subscriber)
{
	(void)subscriber;
	in_owner_only();
	told("unsubscribe\n", 0, 0);
	callback = NULL;
	return OK;
}

EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
	(void)subscriber;
	if (domain == 3 && cbid < KINDS)
		callback_on[cbid] = enable;
	if (domain == 2 && cbid < sizeof call_on)
		call_on[cbid] = enable;
	return OK;
}

EXPORT int cuptiActivityRegisterCallbacks(requested_fn *r, completed_fn *c)
{
	if (set_up_error())
		return set_up_error();
	requested = r;
	completed = c;
	return OK;
}

EXPORT int cuptiActivityEnable(uint32_t kind)
{
	in_owner_only();
	if (set_up_error())
		return set_up_error();
	const char *refused = mode("refuse");
	if (refused && strtoul(refused, NULL, 10) == kind)
		return 7;
	if (kind >= KINDS || (kind == 51 && !BYTES_graph) || (kind == 52 && !BYTES_jit))
		return 21;
	enabled[kind] = true;
	told("enable %u\n", kind, 0);
	return OK;
}

EXPORT int cuptiActivityDisable(uint32_t kind)
{
	in_owner_only();
	if (kind < KINDS)
		enabled[kind] = false;
	told("disable %u\n", kind, 0);
	return OK;
}

#if defined(MOCK_API_FILTER)
EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	if (cbid < 1024)
		dropped_call[cbid] = !enable;
	return OK;
}
#endif

EXPORT int cuptiSetThreadIdType(int type)
{
	system_threads = type == 1;
	return OK;
}

EXPORT int cuptiActivityFlushPeriod(uint32_t ms)
{
	told("period %u\n", ms, 0);
	return OK;
}

EXPORT int cuptiGetGraphNodeId(void *node, uint64_t *id)
{
	*id = on_node_id(node);
	return *id ? OK : 1;
}

EXPORT int cuptiGetGraphId(void *graph, uint32_t *id)
{
	(void)graph;
	*id = 2;
	return OK;
}

EXPORT int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
	(void)per_thread;
	in_owner_only();
	*id = (uintptr_t)stream & 0xff;
	return (uintptr_t)context == MOCK_CONTEXT + ((uintptr_t)stream >> 8) ? OK : 4; /* CUPTI_ERROR_INVALID_STREAM */
}

EXPORT int cuptiGetDeviceId(void *context, uint32_t *device)
{
	in_owner_only();
	*device = (uint32_t)((uintptr_t)context - MOCK_CONTEXT);
	return OK;
}

EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
	*name = domain == 2 && cbid == 1023 ? "cudaOfTheFuture_v99000" : NULL;
	return *name ? OK : 1;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = 0;
	return OK;
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = buffer;
	if (*record) {
		uint32_t kind;
		memcpy(&kind, *record, 4);
		next = *record + bytes_of(kind);
	}
	if (next + 8 > buffer + valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED: the end */
	*record = next;
	return OK;
}

static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Full buffers, filled beforehand, so that only the collector's own time is counted. */
static void flood(uint64_t n)
{
	static const char *const name[] = {"void gemm_a(float*)", "void gemm_b(float*)", "elementwise", "softmax_warp_forward"};
	uint64_t begin = 0, t = 0, took = 0, records = 0;
	cuptiGetTimestamp(&begin);
	for (uint64_t i = 0; i < n;) {
		uint8_t *p = NULL;
		size_t size = 0, max = 0, used = 0;
		requested(&p, &size, &max);
		if (!p)
			break;
		half[0] = (struct half){.p = p, .size = size, .ours = true};
		half[1] = half[0];
		for (; i < n && used + BYTES_api + BYTES_kernel <= size; i++, t += 5000) {
			struct mock_event e = {.kind = 5, .cbid = 211, .start = begin + t, .end = begin + t + 2000, .correlation = (uint32_t)i + 1, .thread = (uint32_t)getpid()};
			half[0].used = used;
			write_record(&e);
			used += BYTES_api;
			half[1].used = used;
			e.kind = 10;
			e.name = name[i % 4];
			e.stream = 7;
			e.context = 1;
			e.registers = 32;
			e.grid[0] = 100 + (int)(i % 16);
			e.grid[1] = e.grid[2] = e.block[1] = e.block[2] = 1;
			e.block[0] = 256;
			write_record(&e);
			used += BYTES_kernel;
			records += 2;
		}
		half[0].p = half[1].p = NULL;
		int64_t before = cpu_ns();
		completed(NULL, 0, p, size, used);
		took += (uint64_t)(cpu_ns() - before);
	}
	FILE *f = getenv("MOCK_FLOOD_OUT") ? fopen(getenv("MOCK_FLOOD_OUT"), "we") : NULL;
	if (f) {
		fprintf(f, "records %llu ns_per_record %.1f\n", (unsigned long long)records, records ? (double)took / (double)records : 0.0);
		fclose(f);
	}
}

EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	static bool flooded;
	in_owner_only();
	if (!requested)
		return 7;
	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < BUFFER_HALVES; k++)
		hand_over(&half[k]);
	if (mode("flood") && !flooded && !stolen) {
		flooded = true;
		flood(strtoull(mode("flood"), NULL, 10));
	}
	pthread_mutex_unlock(&lock);
	if (flag)
		told("flush %u\n", flag, 0);
	return OK;
}
