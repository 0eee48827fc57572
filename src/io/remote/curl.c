#include "io/remote/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

enum { OLDEST = 0x075700 }; /* 7.87: older ones do not sign what S3 wants */
static const char curl_name[] = "libcurl.so.4";

struct remote_curl libcurl;

static const struct remote_curl_row {
	const char *name;
	size_t at;
} curl_rows[] = {
#define CURL_ROW(name) {"curl_" #name, offsetof(struct remote_curl, name)},
	CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
};

static struct err curl_failed;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_load(void)
{
	void *library = dlopen(curl_name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		err_set(&curl_failed, ERR_IO, "addresses need %s, which cannot be loaded: %s", curl_name, dlerror());
		return;
	}
	for (const struct remote_curl_row *r = curl_rows; r < curl_rows + sizeof curl_rows / sizeof *curl_rows; r++) {
		void *function = dlsym(library, r->name);
		if (!function) {
			err_set(&curl_failed, ERR_IO, "%s has no %s: version 7.87 or later was expected", curl_name, r->name);
			return;
		}
		*(void **)(void *)((char *)&libcurl + r->at) = function;
	}
	const curl_version_info_data *v = libcurl.version_info(CURLVERSION_NOW);
	if (v->version_num < OLDEST)
		err_set(&curl_failed, ERR_IO, "%s is of version %s: 7.87 or later was expected", curl_name, v->version);
	else if (libcurl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		err_set(&curl_failed, ERR_IO, "%s cannot be set up", curl_name);
}

int remote_curl_load(struct err *e)
{
	pthread_once(&curl_once, curl_load);
	return curl_failed.code ? err_set(e, curl_failed.code, "%s", curl_failed.msg) : 0;
}
