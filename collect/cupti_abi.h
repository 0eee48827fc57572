/* What the collector knows of CUPTI: the parts of its records, calls and numbers that are used, as they are in every version from
 * CUDA 11.2 to 13, so that nothing of the CUDA toolkit is needed to build. Names are CUPTI's own.
 *
 * CUPTI fills the newest struct of its own version. Since CUDA 9 each version of a struct only appends to the one before it, or gives
 * padding a name, so that a field read here is at the same offset in all. Every field below is in CUDA 11.2 already, except where
 * `since` says otherwise; older versions are refused (CUPTI_VERSION_MIN). tests/oracle/test_cupti_layouts.py compares each offset and
 * width with those of the toolkits' headers. */
#ifndef OPSCOPE_COLLECT_CUPTI_ABI_H
#define OPSCOPE_COLLECT_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUPTI_VERSION_MIN = 14,          /* cuptiGetVersion in CUDA 11.2 */
	CUPTI_VERSION_GRAPH_TRACE = 17,  /* 11.7 */
	CUPTI_VERSION_CLUSTER = 18,      /* 11.8 */
	CUPTI_VERSION_JIT = 18,
	CUPTI_VERSION_LAUNCHER = 130000, /* 13.0 */
};

/* A union of {process, thread} and {device, context, stream}. */
typedef uint32_t cupti_object[3];
typedef uint8_t cupti_uuid[16];

/* One field, at its place in the record whatever stands between. */
#define AT(offset, type, name) struct __attribute__((packed)) { char before_##name[offset]; type name; };
#define RECORD(name, fields) struct cupti_##name { union { struct { uint32_t kind; } __attribute__((packed)); fields }; }

RECORD(api, /* CUpti_ActivityAPI */
	AT(4, uint32_t, cbid)
	AT(8, uint64_t, start)
	AT(16, uint64_t, end)
	AT(24, uint32_t, processId)
	AT(28, uint32_t, threadId)
	AT(32, uint32_t, correlationId)
	AT(36, uint32_t, returnValue));

RECORD(kernel, /* CUpti_ActivityKernel6 */
	AT(6, uint16_t, registersPerThread)
	AT(16, uint64_t, start)
	AT(24, uint64_t, end)
	AT(40, uint32_t, deviceId)
	AT(44, uint32_t, contextId)
	AT(48, uint32_t, streamId)
	AT(52, int32_t, gridX)
	AT(56, int32_t, gridY)
	AT(60, int32_t, gridZ)
	AT(64, int32_t, blockX)
	AT(68, int32_t, blockY)
	AT(72, int32_t, blockZ)
	AT(76, int32_t, staticSharedMemory)
	AT(80, int32_t, dynamicSharedMemory)
	AT(84, uint32_t, localMemoryPerThread)
	AT(92, uint32_t, correlationId)
	AT(104, const char *, name)
	AT(144, uint64_t, graphNodeId)
	AT(156, uint32_t, graphId));

RECORD(kernel_cluster, /* CUpti_ActivityKernel8, since CUPTI_VERSION_CLUSTER */
	AT(176, uint32_t, clusterX)
	AT(180, uint32_t, clusterY)
	AT(184, uint32_t, clusterZ));

RECORD(kernel_launcher, /* CUpti_ActivityKernel10, since CUPTI_VERSION_LAUNCHER */
	AT(208, uint8_t, isDeviceLaunched));

RECORD(memcpy, /* CUpti_ActivityMemcpy4 */
	AT(4, uint8_t, copyKind)
	AT(5, uint8_t, srcKind)
	AT(6, uint8_t, dstKind)
	AT(7, uint8_t, flags)
	AT(8, uint64_t, bytes)
	AT(16, uint64_t, start)
	AT(24, uint64_t, end)
	AT(32, uint32_t, deviceId)
	AT(36, uint32_t, contextId)
	AT(40, uint32_t, streamId)
	AT(44, uint32_t, correlationId)
	AT(64, uint64_t, graphNodeId)
	AT(72, uint32_t, graphId));

RECORD(peer, /* CUpti_ActivityMemcpyPtoP3 */
	AT(4, uint8_t, copyKind)
	AT(5, uint8_t, srcKind)
	AT(6, uint8_t, dstKind)
	AT(7, uint8_t, flags)
	AT(8, uint64_t, bytes)
	AT(16, uint64_t, start)
	AT(24, uint64_t, end)
	AT(32, uint32_t, deviceId)
	AT(36, uint32_t, contextId)
	AT(40, uint32_t, streamId)
	AT(44, uint32_t, srcDeviceId)
	AT(52, uint32_t, dstDeviceId)
	AT(60, uint32_t, correlationId)
	AT(72, uint64_t, graphNodeId)
	AT(80, uint32_t, graphId));

RECORD(memset, /* CUpti_ActivityMemset3 */
	AT(4, uint32_t, value)
	AT(8, uint64_t, bytes)
	AT(16, uint64_t, start)
	AT(24, uint64_t, end)
	AT(32, uint32_t, deviceId)
	AT(36, uint32_t, contextId)
	AT(40, uint32_t, streamId)
	AT(44, uint32_t, correlationId)
	AT(50, uint16_t, memoryKind)
	AT(64, uint64_t, graphNodeId)
	AT(72, uint32_t, graphId));

RECORD(sync, /* CUpti_ActivitySynchronization */
	AT(4, uint32_t, type)
	AT(8, uint64_t, start)
	AT(16, uint64_t, end)
	AT(24, uint32_t, correlationId)
	AT(28, uint32_t, contextId)
	AT(32, uint32_t, streamId)
	AT(36, uint32_t, cudaEventId));

RECORD(event, /* CUpti_ActivityCudaEvent */
	AT(4, uint32_t, correlationId)
	AT(8, uint32_t, contextId)
	AT(12, uint32_t, streamId)
	AT(16, uint32_t, eventId));

RECORD(overhead, /* CUpti_ActivityOverhead */
	AT(4, uint32_t, overheadKind)
	AT(8, uint32_t, objectKind)
	AT(12, cupti_object, objectId)
	AT(24, uint64_t, start)
	AT(32, uint64_t, end));

RECORD(device, /* CUpti_ActivityDevice2 */
	AT(8, uint64_t, globalMemoryBandwidth)
	AT(16, uint64_t, globalMemorySize)
	AT(32, uint32_t, numThreadsPerWarp)
	AT(36, uint32_t, coreClockRate)
	AT(44, uint32_t, numMultiprocessors)
	AT(52, uint32_t, maxWarpsPerMultiprocessor)
	AT(104, uint32_t, computeCapabilityMajor)
	AT(108, uint32_t, computeCapabilityMinor)
	AT(112, uint32_t, id)
	AT(120, cupti_uuid, uuid)
	AT(136, const char *, name));

RECORD(context, /* CUpti_ActivityContext */
	AT(4, uint32_t, contextId)
	AT(8, uint32_t, deviceId)
	AT(14, uint16_t, nullStreamId));

RECORD(stream, /* CUpti_ActivityStream */
	AT(4, uint32_t, contextId)
	AT(8, uint32_t, streamId)
	AT(12, uint32_t, priority)
	AT(16, uint32_t, flag));

RECORD(memory, /* CUpti_ActivityMemory2 */
	AT(4, uint32_t, memoryOperationType)
	AT(8, uint32_t, memoryKind)
	AT(12, uint32_t, correlationId)
	AT(16, uint64_t, address)
	AT(24, uint64_t, bytes)
	AT(32, uint64_t, timestamp)
	AT(48, uint32_t, processId)
	AT(52, uint32_t, deviceId)
	AT(56, uint32_t, contextId)
	AT(60, uint32_t, streamId)
	AT(64, const char *, name));

RECORD(graph, /* CUpti_ActivityGraphTrace, since CUPTI_VERSION_GRAPH_TRACE */
	AT(4, uint32_t, correlationId)
	AT(8, uint64_t, start)
	AT(16, uint64_t, end)
	AT(24, uint32_t, deviceId)
	AT(28, uint32_t, graphId)
	AT(32, uint32_t, contextId)
	AT(36, uint32_t, streamId));

RECORD(jit, /* CUpti_ActivityJit, since CUPTI_VERSION_JIT */
	AT(4, uint32_t, jitEntryType)
	AT(8, uint32_t, jitOperationType)
	AT(12, uint32_t, deviceId)
	AT(16, uint64_t, start)
	AT(24, uint64_t, end)
	AT(32, uint32_t, correlationId));

#undef RECORD
#undef AT

/* CUpti_ActivityKind */
enum cupti_kind {
	CUPTI_MEMCPY = 1, CUPTI_MEMSET = 2, CUPTI_DRIVER = 4, CUPTI_RUNTIME = 5, CUPTI_DEVICE = 8, CUPTI_CONTEXT = 9, CUPTI_KERNEL = 10,
	CUPTI_OVERHEAD = 17, CUPTI_PEER = 22, CUPTI_EVENT = 36, CUPTI_STREAM = 37, CUPTI_SYNC = 38, CUPTI_MEMORY = 49, CUPTI_GRAPH = 51, CUPTI_JIT = 52,
	CUPTI_KINDS
};

/* CUptiResult */
enum {
	CUPTI_OK = 0, CUPTI_LIMIT_REACHED = 12, CUPTI_NOT_INITIALIZED = 15, CUPTI_INVALID_KIND = 21, CUPTI_NO_PRIVILEGES = 35,
	CUPTI_OTHER_SUBSCRIBER = 39, CUPTI_UNKNOWN = 999,
};

/* CUpti_CallbackDomain, CUpti_CallbackIdResource, CUpti_ActivityThreadIdType, CUpti_ActivityFlag */
enum {
	CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2, CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_GRAPHNODE_CREATED = 13, CUPTI_GRAPHNODE_CLONED = 20,
	CUPTI_THREAD_ID_SYSTEM = 1,
	CUPTI_FLUSH_FORCED = 1,
};

/* Objects in CUpti_ActivityOverhead.objectKind */
enum { CUPTI_OBJECT_THREAD = 2, CUPTI_OBJECT_DEVICE = 3 };

/* CUpti_runtime_api_trace_cbid, CUpti_driver_api_trace_cbid */
enum {
	CBID_GET_LAST_ERROR = 10, CBID_PEEK_AT_LAST_ERROR = 11, CBID_GET_DEVICE = 17, CBID_EVENT_QUERY = 138,
	CBID_PROFILER_START = 171, CBID_PROFILER_STOP = 172, CBID_DRIVER_PROFILER_START = 308, CBID_DRIVER_PROFILER_STOP = 309, CBID_DRIVER_STREAM_GET_CONTEXT = 483,
};

/* CUpti_ApiCallbackSite, which CUpti_CallbackData begins with. */
enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };

/* CUpti_ResourceData, given to a callback of CUPTI_DOMAIN_RESOURCE; of a graph or its nodes, `descriptor` is a struct cupti_graph_data. */
struct cupti_resource_data {
	void *context, *handle;
	const void *descriptor;
};

/* CUpti_GraphData */
struct cupti_graph_data {
	void *graph, *originalGraph, *node, *originalNode;
	int nodeType;
	void *dependency, *graphExec;
};

/* CUpti_SubscriberParams (12.8 on) */
struct cupti_subscriber_params {
	size_t structSize;
	const char *subscriberName;
	char *oldSubscriberName; /* at least CUPTI_NAME_BYTES */
	size_t oldSubscriberSize;
};
enum { CUPTI_NAME_BYTES = 64 };

typedef void cupti_callback(void *userdata, uint32_t domain, uint32_t cbid, const void *data);
typedef void cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void cupti_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

#endif
