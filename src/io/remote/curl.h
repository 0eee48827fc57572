/* libcurl, loaded when an address is opened: linked, each command would load it, and thirty more libraries, which takes ten times as long as to start. Its functions are asked
 * for as members: libcurl.easy_init(). */
#ifndef OPSCOPE_IO_REMOTE_CURL_H
#define OPSCOPE_IO_REMOTE_CURL_H

#include <curl/curl.h>

#include "base/err.h"

/* One row a function that is used. */
#define CURL_FUNCTIONS(ROW)    \
	ROW(easy_cleanup)      \
	ROW(easy_getinfo)      \
	ROW(easy_init)         \
	ROW(easy_pause)        \
	ROW(easy_reset)        \
	ROW(easy_setopt)       \
	ROW(easy_strerror)     \
	ROW(free)              \
	ROW(global_init)       \
	ROW(multi_add_handle)  \
	ROW(multi_cleanup)     \
	ROW(multi_info_read)   \
	ROW(multi_init)        \
	ROW(multi_perform)     \
	ROW(multi_poll)        \
	ROW(multi_remove_handle) \
	ROW(multi_wakeup)      \
	ROW(slist_append)      \
	ROW(slist_free_all)    \
	ROW(url)               \
	ROW(url_cleanup)       \
	ROW(url_get)           \
	ROW(url_set)           \
	ROW(version_info)

/* libcurl checks types by macros of these names, which take no member. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
extern struct remote_curl {
	CURL_FUNCTIONS(CURL_MEMBER)
} libcurl;
#undef CURL_MEMBER

/* To be called before anything of `libcurl`, as often as wanted, on any thread. ERR_IO. */
int remote_curl_load(struct err *e);

#endif
