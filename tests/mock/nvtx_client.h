/* The little of NVTX 3 that guests of the tests use, as its headers do it: the library named by $NVTX_INJECTION64_PATH fills a table of
 * functions. Without it, or when it declines, nothing happens. */
#ifndef MOCK_NVTX_CLIENT_H
#define MOCK_NVTX_CLIENT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

enum { NVTX_MODULE_CORE = 1, NVTX_CORE_PUSH_A = 9, NVTX_CORE_POP = 11, NVTX_CORE_SIZE = 16, NVTX_EXPORT_CALLBACKS = 1 };
enum { NVTX_MODULE_CUDART = 4, NVTX_CUDART_STREAM_A = 3, NVTX_CUDART_SIZE = 7 };

struct nvtx {
	int (*push)(const char *message);
	int (*pop)(void);
	void (*name_stream)(void *stream, const char *name);
};

static struct nvtx nvtx_functions;

static int nvtx_table(int module, void ****table, unsigned *size)
{
	static void **entry[NVTX_CORE_SIZE + 1] = {
		[NVTX_CORE_PUSH_A] = (void **)&nvtx_functions.push, [NVTX_CORE_POP] = (void **)&nvtx_functions.pop};
	static void **of_cudart[NVTX_CUDART_SIZE + 1] = {[NVTX_CUDART_STREAM_A] = (void **)&nvtx_functions.name_stream};
	static void *unused[NVTX_CORE_SIZE];
	if (module != NVTX_MODULE_CORE && module != NVTX_MODULE_CUDART)
		return 0;
	*table = module == NVTX_MODULE_CORE ? entry : of_cudart;
	*size = module == NVTX_MODULE_CORE ? NVTX_CORE_SIZE : NVTX_CUDART_SIZE;
	for (unsigned i = 1; i < *size; i++)
		if (!(*table)[i])
			(*table)[i] = &unused[i];
	return 1;
}

static const void *nvtx_export(unsigned id)
{
	static const struct {
		size_t size;
		int (*table)(int, void ****, unsigned *);
	} callbacks = {sizeof callbacks, nvtx_table};
	return id == NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

static const struct nvtx *nvtx_load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(const void *(*)(unsigned)) = NULL;
	if (library)
		*(void **)&start = dlsym(library, "InitializeInjectionNvtx2");
	if (start)
		start(nvtx_export);
	return &nvtx_functions;
}

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

static inline void nvtx_name_stream(const struct nvtx *n, void *stream, const char *name)
{
	if (n->name_stream)
		n->name_stream(stream, name);
}

#endif
