/* Which libcupti: two copies in one process do not work, so that one which is there already goes before all others. */
#include "cupti.h"
#include "glibc.h"
#include "writer.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

void *cuda_function(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	void *f = driver ? dlsym(driver, name) : NULL;
	if (driver)
		dlclose(driver); /* only the count: it stays loaded */
	return f;
}

/* Major version of CUDA that the driver is made for; 0 = unknown. */
static int driver_major(void)
{
	int (*get)(int *) = NULL;
	int version = 0;
	*(void **)&get = cuda_function("cuDriverGetVersion");
	return get && get(&version) == 0 ? version / 1000 : 0;
}

static int is_cupti(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;
	if (strncmp(name, "libcupti.so", 11) != 0 || strlen(info->dlpi_name) >= PATH_BYTES)
		return 0;
	strcpy(path, info->dlpi_name);
	return 1;
}

static const struct name { const char *file; int major; } names[] = {
	{"libcupti.so.13", 13}, {"libcupti.so.12", 12}, {"libcupti.so.11.8", 11}, {"libcupti.so.11.7", 11}, {"libcupti.so.11.6", 11},
	{"libcupti.so.11.5", 11}, {"libcupti.so.11.4", 11}, {"libcupti.so.11.3", 11}, {"libcupti.so.11.2", 11}, {"libcupti.so", 0},
};

/* By the names that it has in the folder (of `n` bytes; 0 = where the loader looks), the newest that the driver can serve. */
static void *open_in(const char *folder, size_t n, int major)
{
	char path[PATH_BYTES];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (major && names[i].major > major)
			continue;
		if (snprintf(path, sizeof path, "%.*s%s%s", (int)n, folder, n ? "/" : "", names[i].file) >= (int)sizeof path)
			continue;
		void *library = dlopen(path, RTLD_LAZY);
		if (library)
			return library;
	}
	return NULL;
}

static void *open_in_folders(const char *folders, int major)
{
	for (const char *p = folders; p && *p;) {
		size_t n = strcspn(p, ":");
		void *library = n ? open_in(p, n, major) : NULL;
		if (library)
			return library;
		p += n + (p[n] == ':');
	}
	return NULL;
}

static void *cupti_library_find(void)
{
	static const char usual[] = "/usr/local/cuda/extras/CUPTI/lib64:/usr/local/cuda/lib64:/usr/local/cuda/lib:/opt/cuda/extras/CUPTI/lib64";
	char path[PATH_BYTES];
	void *library = NULL;
	const char *chosen = option("CUPTI");
	if (chosen) {
		library = dlopen(chosen, RTLD_LAZY);
		if (!library)
			note("cupti-not-found", true, "no work of the GPU: OPSCOPE_CUPTI names ", chosen, ", which cannot be loaded", NULL);
		return library;
	}
	if (dl_iterate_phdr(is_cupti, path))
		library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	int major = driver_major();
	if (!library)
		library = open_in_folders(option("CUPTI_PATH"), major);
	if (!library)
		library = open_in("", 0, major);
	if (!library)
		library = open_in_folders(usual, major);
	if (!library)
		note("cupti-not-found", true, "no work of the GPU: libcupti was not found; OPSCOPE_CUPTI=/path/to/libcupti.so names it", NULL);
	return library;
}

bool cupti_load(struct cupti_calls *call, uint32_t *version)
{
	void *library = cupti_library_find();
	if (!library)
		return false;
	const char *missing = NULL;
#define OPTIONAL_(name, arguments) *(void **)&call->name = dlsym(library, "cupti" #name);
#define REQUIRED_(name, arguments) OPTIONAL_(name, arguments) missing = call->name ? missing : "cupti" #name;
	CUPTI_CALLS(REQUIRED_, OPTIONAL_)
	char number[16], path[PATH_BYTES];
	if (dl_iterate_phdr(is_cupti, path))
		keep_meta("cupti.library", path, strlen(path));
	if (missing) {
		note("cupti-unusable", true, "no work of the GPU: libcupti has no function ", missing, NULL);
		return false;
	}
	if (call->GetVersion(version) != CUPTI_OK)
		*version = 0;
	keep_meta_u64("cupti.version", *version);
	snprintf(number, sizeof number, "%u", *version);
	if (*version < CUPTI_VERSION_MIN) {
		note("cupti-too-old", true, "no work of the GPU: libcupti is of version ", number, ", older than that of CUDA 11.2 (14)", NULL);
		return false;
	}
	return true;
}
