/* The little of NVTX 3 that guests of the tests use: what opscope.torch uses of it, and names of streams. Without a tool that listens nothing happens. */
#ifndef MOCK_NVTX_CLIENT_H
#define MOCK_NVTX_CLIENT_H

#include "../../python/annotate/nvtx.h"

static inline void nvtx_push(const struct nvtx *n, const char *message)
{
	if (n->push)
		n->push(message);
}

static inline void nvtx_pop(const struct nvtx *n)
{
	if (n->pop)
		n->pop();
}

static inline void nvtx_name_stream(void *stream, const char *name)
{
	void (*call)(void *, const char *);
	memcpy(&call, &nvtx_slots[NVTX_MODULE_CUDART][NVTX_CUDART_STREAM_A], sizeof call);
	if (call)
		call(stream, name);
}

#endif
