/* The part of NVTX 3 that a program needs that pushes and pops, for whatever tool $NVTX_INJECTION64_PATH names. The tool fills tables of functions;
 * what it leaves NULL it does not want. */
#ifndef OPSCOPE_ANNOTATE_NVTX_H
#define OPSCOPE_ANNOTATE_NVTX_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum {
	NVTX_EXPORT_CALLBACKS = 1, NVTX_EXPORT_VERSION = 3,
	NVTX_MODULE_CORE = 1, NVTX_MODULE_CUDART = 4, NVTX_MODULE_CORE2 = 5, NVTX_MODULES = 7,
	NVTX_CORE_START_A = 5, NVTX_CORE_END = 7, NVTX_CORE_PUSH_A = 9, NVTX_CORE_POP = 11,
	NVTX_CUDART_STREAM_A = 3,
	NVTX_SLOTS = 17,   /* of the largest table, and one: slot 0 is never used */
};

struct nvtx {
	int (*push)(const char *message);
	int (*pop)(void);
	uint64_t (*start)(const char *message);
	void (*end)(uint64_t range);
};

static void *nvtx_slots[NVTX_MODULES][NVTX_SLOTS];
static void **nvtx_entries[NVTX_MODULES][NVTX_SLOTS];

static int nvtx_table(int module, void ****table, unsigned *size)
{
	/* core, CUDA, OpenCL, CUDA runtime, core 2, synchronisation */
	static const unsigned sizes[NVTX_MODULES] = {0, 16, 7, 16, 7, 16, 6};
	if (module < 1 || module >= NVTX_MODULES)
		return 0;
	for (unsigned i = 1; i < sizes[module]; i++)
		nvtx_entries[module][i] = &nvtx_slots[module][i];
	*table = nvtx_entries[module];
	if (size)
		*size = sizes[module];
	return 1;
}

static void nvtx_version_of_injection(uint32_t version)
{
	(void)version;
}

static inline const void *nvtx_export(uint32_t id)
{
	static const struct {
		size_t size;
		int (*table)(int, void ****, unsigned *);
	} callbacks = {sizeof callbacks, nvtx_table};
	static const struct {
		size_t size;
		uint32_t version, reserved;
		void (*injection)(uint32_t);
	} version = {sizeof version, 3, 0, nvtx_version_of_injection};
	return id == NVTX_EXPORT_CALLBACKS ? (const void *)&callbacks : id == NVTX_EXPORT_VERSION ? (const void *)&version : NULL;
}

/* Asks the tool to fill the tables; false when none listens. The tool stays loaded. `exported` answers what it asks us for. */
static inline bool nvtx_ask(const void *(*exported)(uint32_t))
{
	const char *path = getauxval(AT_SECURE) ? NULL : getenv("NVTX_INJECTION64_PATH"); /* AT_SECURE: the caller has fewer rights, and chose the variable */
	void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
	void *symbol = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
	int (*start)(const void *(*)(uint32_t)) = NULL;
	memcpy(&start, &symbol, sizeof start);
	return start && start(exported);
}

/* All NULL when no tool listens. */
static inline struct nvtx nvtx_find(void)
{
	struct nvtx found = {NULL, NULL, NULL, NULL};
	if (!nvtx_ask(nvtx_export))
		return found;
	memcpy(&found.push, &nvtx_slots[NVTX_MODULE_CORE][NVTX_CORE_PUSH_A], sizeof found.push);
	memcpy(&found.pop, &nvtx_slots[NVTX_MODULE_CORE][NVTX_CORE_POP], sizeof found.pop);
	memcpy(&found.start, &nvtx_slots[NVTX_MODULE_CORE][NVTX_CORE_START_A], sizeof found.start);
	memcpy(&found.end, &nvtx_slots[NVTX_MODULE_CORE][NVTX_CORE_END], sizeof found.end);
	return found;
}

#endif
