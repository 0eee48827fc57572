/* As much of the CUDA driver's own interface as tools/gpu_guest.c needs, so that tools/gpu-check can be tried where there is no GPU: it must
 * say "passed" of a driver that does as the real one, and fail where one does not (MOCK_CUPTI). */
#include "mock.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct stream {
	uint32_t id;
	struct stream *older;
	struct mock_graph *capturing;
};
static struct stream null_stream = {.id = 7};
static int context, module, function;

static struct stream *or_null(struct stream *s) { return s ? s : &null_stream; }

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

EXPORT int cuDeviceGetName(char *name, int n, int device)
{
	(void)device;
	snprintf(name, (size_t)n, "NVIDIA H200");
	return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
	return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **c, int device)
{
	(void)device;
	*c = &context;
	mock_devices(1, 1);
	return 0;
}

EXPORT int cuCtxSetCurrent(void *c) { return c ? 0 : 201; }

EXPORT int cuCtxSynchronize(void)
{
	mock_sync(4, 0);
	mock_wait(null_stream.id);
	return 0;
}

EXPORT int cuModuleLoadData(void **m, const void *image)
{
	(void)image;
	*m = &module;
	return 0;
}

EXPORT int cuModuleGetFunction(void **f, void *m, const char *name)
{
	(void)m, (void)name;
	*f = &function;
	return 0;
}

EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, struct stream *s,
                          void **arguments, void **extra)
{
	(void)f, (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;
	uint64_t ns = *(uint64_t *)arguments[0];
	s = or_null(s);
	if (s->capturing)
		mock_graph_kernel(s->capturing, "opscope_spin", (int64_t)ns);
	else
		mock_launch_grid("opscope_spin", s->id, (int64_t)ns + 500, (int32_t)gx, (int32_t)bx);
	return 0;
}

/* The size of a block stands beside it, since freeing it names only the address. */
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { uint64_t at, bytes; } blocks[64];

static uint64_t *block(uint64_t at)
{
	for (int i = 0; i < 64; i++)
		if (blocks[i].at == at)
			return &blocks[i].at;
	return NULL;
}

EXPORT int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	*at = mock_malloc(bytes);
	pthread_mutex_lock(&blocks_lock);
	uint64_t *b = block(0);
	if (b) {
		b[1] = bytes;
		b[0] = *at;
	}
	pthread_mutex_unlock(&blocks_lock);
	return b ? 0 : 2;
}

EXPORT int cuMemFree_v2(uint64_t at)
{
	pthread_mutex_lock(&blocks_lock);
	uint64_t *b = at ? block(at) : NULL, bytes = b ? b[1] : 0;
	if (b)
		*b = 0;
	pthread_mutex_unlock(&blocks_lock);
	if (b)
		mock_free(at, bytes);
	return b ? 0 : 1;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct stream *s)
{
	(void)to, (void)from;
	mock_memcpy(1, bytes, or_null(s)->id);
	return 0;
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct stream *s)
{
	(void)to, (void)from;
	mock_memcpy(2, bytes, or_null(s)->id);
	return 0;
}

EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct stream *s)
{
	(void)to, (void)value;
	mock_memset(bytes, or_null(s)->id);
	return 0;
}

EXPORT int cuStreamCreate(struct stream **s, unsigned flags)
{
	static uint32_t streams = 13;
	static struct stream *newest; /* the driver owns its streams: a program may end without destroying them */
	(void)flags;
	*s = calloc(1, sizeof **s);
	(*s)->id = __atomic_fetch_add(&streams, 1, __ATOMIC_RELAXED);
	(*s)->older = __atomic_load_n(&newest, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&newest, &(*s)->older, *s, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return 0;
}

EXPORT int cuStreamSynchronize(struct stream *s)
{
	mock_sync(3, or_null(s)->id);
	mock_wait(or_null(s)->id);
	return 0;
}

EXPORT int cuStreamBeginCapture_v2(struct stream *s, int mode)
{
	(void)mode;
	s->capturing = mock_graph_begin();
	return 0;
}

EXPORT int cuStreamEndCapture(struct stream *s, struct mock_graph **g)
{
	*g = s->capturing;
	s->capturing = NULL;
	return 0;
}

EXPORT int cuGraphInstantiateWithFlags(struct mock_graph **exec, struct mock_graph *g, unsigned long long flags)
{
	(void)flags;
	mock_graph_instantiate(g);
	*exec = g;
	return 0;
}

EXPORT int cuGraphLaunch(struct mock_graph *exec, struct stream *s)
{
	mock_graph_launch(exec, or_null(s)->id);
	return 0;
}
