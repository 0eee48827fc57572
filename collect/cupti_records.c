/* A buffer of CUPTI's records into records of the segment. Runs on threads of CUPTI's, or of the program when it is at its end: it only
 * copies. What is read of a record is what every version since CUDA 11.2 has (cupti_abi.h). */
#include "cupti.h"
#include "intern.h"
#include "writer.h"

#include <string.h>

/* How many records are written before the thread's writer is let go, so that a signal handler of the program seldom finds it taken. */
enum { AT_ONCE = 64 };
/* A time further from the recording than this is of another clock. */
static const int64_t CLOCK_SLACK_NS = INT64_C(60) * 1000000000;

/* Where in time a buffer's records may lie; set once a buffer. */
struct taking {
	struct writer *w;
	int64_t earliest_ns, latest_ns;
	uint64_t strange;            /* records whose times lie outside */
};

/* Names of kernels come as pointers, the same ones over and over; the text is compared, since a module may have gone and another come. */
enum { NAMES = 4096 };
static struct { _Atomic uintptr_t p; _Atomic uint32_t id; } names[NAMES];

static uint32_t name_id(const char *name)
{
	if (!name)
		return 0;
	uint32_t at = (uint32_t)(((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
	if (atomic_load_explicit(&names[at].p, memory_order_relaxed) == (uintptr_t)name) {
		uint32_t id = atomic_load_explicit(&names[at].id, memory_order_relaxed);
		struct text text = intern_text(id);
		if (text.p && strcmp(text.p, name) == 0 && intern_again(id))
			return id;
	}
	uint32_t id = intern_cstr(name);
	if (!id)
		lose(WIRE_LOST_STRINGS, 1);
	atomic_store_explicit(&names[at].id, id, memory_order_relaxed);
	atomic_store_explicit(&names[at].p, (uintptr_t)name, memory_order_relaxed);
	return id;
}

/* CUPTI's name of an API function, asked for once each. */
enum { FUNCTIONS = 2048 };
static uint32_t cupti_records_function_name(bool driver, uint32_t cbid)
{
	static _Atomic uint32_t known[2][FUNCTIONS]; /* id + 1 */
	if (cbid >= FUNCTIONS || !cupti.call.GetCallbackName)
		return 0;
	uint32_t have = atomic_load_explicit(&known[driver][cbid], memory_order_relaxed);
	if (have && intern_again(have - 1))
		return have - 1;
	const char *name = NULL;
	uint32_t domain = driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
	uint32_t id = cupti.call.GetCallbackName(domain, cbid, &name) == CUPTI_OK ? intern_cstr(name) : 0;
	atomic_store_explicit(&known[driver][cbid], id + 1, memory_order_relaxed);
	return id;
}

/* Whether an event of this time is to be written. A time of 0 is not known: CUPTI had to hand over what was still running. */
static bool cupti_records_wanted(struct taking *t, uint64_t start, uint64_t end)
{
	if (start == 0 && end == 0)
		return true;
	if (start > (uint64_t)t->latest_ns || end > (uint64_t)t->latest_ns || (start && (int64_t)start < t->earliest_ns)) {
		t->strange++;
		return false;
	}
	return control_wanted((int64_t)start);
}

#define WRITE(t, type, flags, id, record, ...)                                                         \
	do {                                                                                           \
		struct record *to_ = writer_room((t)->w, sizeof *to_);                                 \
		if (to_) {                                                                             \
			*to_ = (struct record){.head = writer_head(type, (uint8_t)(flags), id, sizeof *to_), __VA_ARGS__}; \
			writer_commit((t)->w, sizeof *to_);                                            \
		}                                                                                      \
	} while (0)
#define TIMES(r) .start_ns = (int64_t)(r)->start, .end_ns = (int64_t)(r)->end
#define PLACE(r) .correlation = (r)->correlationId, .device = (r)->deviceId, .context = (r)->contextId, .stream = (r)->streamId

static void on_api(struct taking *t, const struct cupti_api *r, bool driver)
{
	if (r->threadId == atomic_load_explicit(&cupti.thread, memory_order_relaxed)) {
		atomic_store_explicit(&cupti.beat_ns, (int64_t)r->start, memory_order_relaxed);
		return;
	}
	if (driver && cupti_is_own_call(r->cbid, r->threadId, r->start, r->end))
		return;
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_API, driver ? WIRE_API_DRIVER : WIRE_API_RUNTIME, r->cbid, wire_api_call, TIMES(r), .correlation = r->correlationId,
		      .thread = r->threadId, .result = r->returnValue, .name = cupti_records_function_name(driver, r->cbid));
}

/* Devices of contexts, as far as they have been told: waits name only the context. */
enum { CONTEXTS = 64 };
static _Atomic uint64_t contexts[CONTEXTS]; /* (id + 1) << 32 | device */

static uint32_t cupti_records_device_of(uint32_t context)
{
	uint64_t have = atomic_load_explicit(&contexts[context % CONTEXTS], memory_order_relaxed);
	return have >> 32 == (uint64_t)context + 1 ? (uint32_t)have : UINT32_MAX;
}

static void know_context(uint32_t context, uint32_t device, uint32_t null_stream)
{
	struct wire_context c = {.head = writer_head(WIRE_CONTEXT, 0, context, sizeof c), .device = device, .null_stream = null_stream};
	atomic_store_explicit(&contexts[context % CONTEXTS], ((uint64_t)context + 1) << 32 | device, memory_order_relaxed);
	if (device < 64)
		atomic_fetch_or_explicit(&cupti.devices, UINT64_C(1) << device, memory_order_relaxed);
	keep(&c, sizeof c, true);
}

static void on_context(const struct cupti_context *r) { know_context(r->contextId, r->deviceId, r->nullStreamId); }

/* Of a context that was there before CUPTI could tell of it, by work in it. */
static void learn_context(uint32_t context, uint32_t device)
{
	if (UNLIKELY(cupti_records_device_of(context) == UINT32_MAX))
		know_context(context, device, UINT32_MAX);
}

static void on_kernel(struct taking *t, const struct cupti_kernel *r)
{
	if (!cupti_records_wanted(t, r->start, r->end))
		return;
	learn_context(r->contextId, r->deviceId);
	uint32_t cluster[3] = {0};
	bool by_device = false;
	if (cupti.version >= CUPTI_VERSION_CLUSTER) {
		const struct cupti_kernel_cluster *c = (const void *)r;
		cluster[0] = c->clusterX, cluster[1] = c->clusterY, cluster[2] = c->clusterZ;
	}
	if (cupti.version >= CUPTI_VERSION_LAUNCHER)
		by_device = ((const struct cupti_kernel_launcher *)(const void *)r)->isDeviceLaunched == 1;
	WRITE(t, WIRE_KERNEL, by_device ? WIRE_LAUNCHED_BY_DEVICE : 0, name_id(r->name), wire_kernel, TIMES(r), PLACE(r),
	      .grid = {(uint32_t)r->gridX, (uint32_t)r->gridY, (uint32_t)r->gridZ},
	      .block = {(uint32_t)r->blockX, (uint32_t)r->blockY, (uint32_t)r->blockZ}, .registers = r->registersPerThread,
	      .static_shared = (uint32_t)r->staticSharedMemory, .dynamic_shared = (uint32_t)r->dynamicSharedMemory,
	      .local_per_thread = r->localMemoryPerThread, .cluster = {cluster[0], cluster[1], cluster[2]}, .graph = r->graphId,
	      .graph_node = r->graphNodeId);
}

#define COPY(r) .bytes = (r)->bytes, .from = (r)->srcKind, .to = (r)->dstKind, .async = (r)->flags & 1, .graph = (r)->graphId, \
	.graph_node = (r)->graphNodeId

static void on_memcpy(struct taking *t, const struct cupti_memcpy *r)
{
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_COPY, r->copyKind, 0, wire_copy, TIMES(r), PLACE(r), COPY(r));
}

static void on_peer(struct taking *t, const struct cupti_peer *r)
{
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_COPY, r->copyKind, 0, wire_copy, TIMES(r), PLACE(r), COPY(r), .peer = 1, .from_device = r->srcDeviceId,
		      .to_device = r->dstDeviceId);
}

static void on_memset(struct taking *t, const struct cupti_memset *r)
{
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_SET, r->memoryKind, 0, wire_set, TIMES(r), PLACE(r), .bytes = r->bytes, .value = r->value, .graph = r->graphId,
		      .graph_node = r->graphNodeId);
}

static void on_stream(const struct cupti_stream *r)
{
	struct wire_stream s = {.head = writer_head(WIRE_STREAM, 0, r->streamId, sizeof s), .context = r->contextId, .flags = r->flag,
	                        .priority = (int32_t)r->priority};
	keep(&s, sizeof s, true);
}

static void cupti_records_on_device(const struct cupti_device *r)
{
	struct wire_device d = {.device = r->id, .nvml_index = UINT32_MAX, .memory_bytes = r->globalMemorySize,
	                        .memory_bandwidth = r->globalMemoryBandwidth * 1000, /* from KB/s */
	                        .cc_major = r->computeCapabilityMajor, .cc_minor = r->computeCapabilityMinor, .sm_count = r->numMultiprocessors,
	                        .clock_khz = r->coreClockRate, .max_warps_per_sm = r->maxWarpsPerMultiprocessor,
	                        .threads_per_warp = r->numThreadsPerWarp};
	memcpy(d.uuid, r->uuid, sizeof d.uuid);
	d.head = writer_head(WIRE_DEVICE, 0, name_id(r->name), sizeof d);
	keep(&d, sizeof d, true);
}

static void on_sync(struct taking *t, const struct cupti_sync *r)
{
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_SYNC, r->type, r->cudaEventId, wire_sync, TIMES(r), .correlation = r->correlationId, .context = r->contextId,
		      .stream = r->streamId, .device = cupti_records_device_of(r->contextId));
}

/* Without a time: what was called for it has one. */
static void on_event(struct taking *t, const struct cupti_event *r)
{
	WRITE(t, WIRE_CUDA_EVENT, 0, r->eventId, wire_cuda_event, .correlation = r->correlationId, .context = r->contextId, .stream = r->streamId);
}

static const char *cupti_records_overhead_name(uint32_t kind)
{
	static const char *const name[] = {"Unknown", "Buffer Flush", "Instrumentation", "Resource", "Runtime Triggered Module Loading",
	                                   "Lazy Function Loading", "Command Buffer Full", "Activity Buffer Request", "UVM Activity Init"};
	if (kind == 1)
		return "Driver Compiler";
	return kind >> 16 < sizeof name / sizeof name[0] ? name[kind >> 16] : name[0];
}

static void on_overhead(struct taking *t, const struct cupti_overhead *r)
{
	bool thread = r->objectKind == CUPTI_OBJECT_THREAD;
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_OVERHEAD, r->objectKind, intern_cstr(cupti_records_overhead_name(r->overheadKind)), wire_overhead, TIMES(r),
		      .thread = thread ? r->objectId[1] : 0, .object = r->objectId[0]);
}

/* Compiling of device code is overhead as well: of the driver, on no thread that CUPTI would name. */
static void on_jit(struct taking *t, const struct cupti_jit *r)
{
	static const char *const entry[] = {"Unknown", "PTX to Cubin", "NVVM IR to PTX"};
	static const char *const operation[] = {"", " (cache load)", " (cache store)", " (compile)"};
	char text[64];
	if (!cupti_records_wanted(t, r->start, r->end))
		return;
	strcpy(text, "JIT ");
	strcat(text, entry[r->jitEntryType < 3 ? r->jitEntryType : 0]);
	strcat(text, operation[r->jitOperationType < 4 ? r->jitOperationType : 0]);
	WRITE(t, WIRE_OVERHEAD, CUPTI_OBJECT_DEVICE, intern_cstr(text), wire_overhead, TIMES(r), .object = r->deviceId);
}

static void on_graph(struct taking *t, const struct cupti_graph *r)
{
	if (cupti_records_wanted(t, r->start, r->end))
		WRITE(t, WIRE_GRAPH, 0, r->graphId, wire_graph, TIMES(r), PLACE(r));
}

static void on_memory(struct taking *t, const struct cupti_memory *r)
{
	enum { RELEASE = 2 };
	int64_t bytes = r->bytes > INT64_MAX ? 0 : (int64_t)r->bytes;
	if (cupti_records_wanted(t, r->timestamp, r->timestamp))
		WRITE(t, WIRE_DEVICE_MEMORY, r->memoryKind, name_id(r->name), wire_device_memory, .time_ns = (int64_t)r->timestamp,
		      .address = r->address, .bytes = r->memoryOperationType == RELEASE ? -bytes : bytes, .device = r->deviceId,
		      .context = r->contextId, .stream = r->streamId, .correlation = r->correlationId);
}

/* Bytes of a record that are read, by its kind; 0 = it is not ours: another client may have switched on more kinds. */
static size_t cupti_records_bytes_read(uint32_t kind)
{
	static const uint16_t bytes[CUPTI_KINDS] = {
		[CUPTI_MEMCPY] = sizeof(struct cupti_memcpy), [CUPTI_MEMSET] = sizeof(struct cupti_memset), [CUPTI_DRIVER] = sizeof(struct cupti_api),
		[CUPTI_RUNTIME] = sizeof(struct cupti_api), [CUPTI_DEVICE] = sizeof(struct cupti_device), [CUPTI_CONTEXT] = sizeof(struct cupti_context),
		[CUPTI_KERNEL] = sizeof(struct cupti_kernel), [CUPTI_OVERHEAD] = sizeof(struct cupti_overhead), [CUPTI_PEER] = sizeof(struct cupti_peer),
		[CUPTI_STREAM] = sizeof(struct cupti_stream), [CUPTI_EVENT] = sizeof(struct cupti_event), [CUPTI_SYNC] = sizeof(struct cupti_sync), [CUPTI_MEMORY] = sizeof(struct cupti_memory),
		[CUPTI_GRAPH] = sizeof(struct cupti_graph), [CUPTI_JIT] = sizeof(struct cupti_jit)};
	size_t n = kind < CUPTI_KINDS ? bytes[kind] : 0;
	if (kind == CUPTI_KERNEL && cupti.version >= CUPTI_VERSION_LAUNCHER)
		return sizeof(struct cupti_kernel_launcher);
	if (kind == CUPTI_KERNEL && cupti.version >= CUPTI_VERSION_CLUSTER)
		return sizeof(struct cupti_kernel_cluster);
	return n;
}

static void cupti_records_take(struct taking *t, const void *r, uint32_t kind)
{
	switch (kind) {
	case CUPTI_RUNTIME: on_api(t, r, false); break;
	case CUPTI_DRIVER: on_api(t, r, true); break;
	case CUPTI_KERNEL: on_kernel(t, r); break;
	case CUPTI_MEMCPY: on_memcpy(t, r); break;
	case CUPTI_PEER: on_peer(t, r); break;
	case CUPTI_MEMSET: on_memset(t, r); break;
	case CUPTI_SYNC: on_sync(t, r); break;
	case CUPTI_EVENT: on_event(t, r); break;
	case CUPTI_OVERHEAD: on_overhead(t, r); break;
	case CUPTI_JIT: on_jit(t, r); break;
	case CUPTI_GRAPH: on_graph(t, r); break;
	case CUPTI_MEMORY: on_memory(t, r); break;
	case CUPTI_DEVICE: cupti_records_on_device(r); break;
	case CUPTI_CONTEXT: on_context(r); break;
	case CUPTI_STREAM: on_stream(r); break;
	}
}

void cupti_take_records(uint8_t *buffer, size_t valid)
{
	struct taking t = {.w = writer_any(), .earliest_ns = cupti.start_ns - CLOCK_SLACK_NS, .latest_ns = now_ns() + CLOCK_SLACK_NS};
	uint8_t *r = NULL;
	uint64_t n = 0, unwritten = 0;
	int status;
	while ((status = cupti.call.ActivityGetNextRecord(buffer, valid, &r)) == CUPTI_OK) {
		uint32_t kind = 0;
		size_t left = (size_t)(buffer + valid - r);
		bool inside = r >= buffer && left >= sizeof kind && left <= valid;
		if (inside)
			memcpy(&kind, r, sizeof kind);
		size_t need = cupti_records_bytes_read(kind);
		if (!inside || need > left) {
			status = CUPTI_INVALID_KIND;
			break;
		}
		if (need && t.w)
			cupti_records_take(&t, r, kind);
		unwritten += need && !t.w;
		if (++n % AT_ONCE == 0) {
			if (t.w)
				writer_leave(t.w);
			t.w = writer_any();
		}
	}
	if (t.w)
		writer_leave(t.w);
	lose(WIRE_LOST_THREADS, unwritten);
	if (status != CUPTI_OK && status != CUPTI_LIMIT_REACHED)
		note("cupti-broken-buffer", true, "a buffer of CUPTI broke off in a record: what stood behind it is not here", NULL);
	if (t.strange)
		lose(WIRE_LOST_CLOCK, t.strange);
}
