/* Names of streams. A program gives them to handles; records of work have numbers. CUPTI knows both, by the context, which the driver knows. */
#include "cupti.h"
#include "sys.h"
#include "writer.h"

/* The latest of the library's own calls of the driver on threads of the program: CUPTI will tell of them as of all others. */
enum { OWN_CALLS = 64 };
static struct {
	_Atomic uint32_t thread;
	_Atomic int64_t begin_ns, end_ns;
} own[OWN_CALLS];
static _Atomic uint32_t n_own;

bool cupti_is_own_call(uint32_t cbid, uint32_t thread, uint64_t start_ns, uint64_t end_ns)
{
	for (int i = 0; cbid == CBID_DRIVER_STREAM_GET_CONTEXT && i < OWN_CALLS; i++)
		if (atomic_load_explicit(&own[i].thread, memory_order_relaxed) == thread &&
		    (int64_t)start_ns >= atomic_load_explicit(&own[i].begin_ns, memory_order_relaxed) &&
		    (int64_t)end_ns <= atomic_load_explicit(&own[i].end_ns, memory_order_relaxed))
			return true;
	return false;
}

/* NULL = not known. */
static void *context_of(void *stream)
{
	uint32_t i = atomic_fetch_add_explicit(&n_own, 1, memory_order_relaxed) % OWN_CALLS;
	void *context = NULL;
	atomic_store_explicit(&own[i].thread, sys_tid(), memory_order_relaxed);
	atomic_store_explicit(&own[i].begin_ns, now_ns(), memory_order_relaxed);
	atomic_store_explicit(&own[i].end_ns, INT64_MAX, memory_order_relaxed); /* it may be told of before it is over */
	int error = cupti.stream_context(stream, &context);
	atomic_store_explicit(&own[i].end_ns, now_ns(), memory_order_relaxed);
	return error ? NULL : context;
}

void cupti_name_stream(void *stream, uint32_t text)
{
	uint32_t number, device;
	if (!cupti_is_on() || !atomic_load(&cupti.ready) || !cupti.stream_context || !cupti.call.GetStreamIdEx || !cupti.call.GetDeviceId)
		return;
	void *context = context_of(stream);
	if (!context || cupti.call.GetStreamIdEx(context, stream, 0, &number) != CUPTI_OK || cupti.call.GetDeviceId(context, &device) != CUPTI_OK)
		return;
	struct wire_resource r = {writer_head(WIRE_RESOURCE, 0, text, sizeof r), .kind = WIRE_RESOURCE_CUDA_STREAM_NUMBER,
	                          .handle = (uint64_t)device << 32 | number};
	keep(&r, sizeof r, true);
}
