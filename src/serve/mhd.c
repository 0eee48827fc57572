#include "serve/mhd.h"

#include <dlfcn.h>
#include <stddef.h>

/* Since 0.9.70; it changes when the functions do. */
static const char library_name[] = "libmicrohttpd.so.12";

struct mhd mhd;

static const struct serve_mhd_row {
	const char *name;
	size_t at;
} rows[] = {
#define MHD_ROW(name) {"MHD_" #name, offsetof(struct mhd, name)},
	MHD_FUNCTIONS(MHD_ROW)
#undef MHD_ROW
};

int mhd_load(struct err *e)
{
	void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(e, ERR_IO, "the server needs %s, which cannot be loaded: %s", library_name, dlerror());
	for (const struct serve_mhd_row *r = rows; r < rows + sizeof rows / sizeof rows[0]; r++) {
		void *function = dlsym(library, r->name);
		if (!function)
			return err_set(e, ERR_IO, "%s has no %s: version 0.9.70 or later was expected", library_name, r->name);
		*(void **)(void *)((char *)&mhd + r->at) = function;
	}
	return 0;
}
