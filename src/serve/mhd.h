/* libmicrohttpd, loaded when a server starts: linked, each command would load it, and GnuTLS with seven more libraries for the encryption that
 * opscope does not use. Its functions are asked for as members: mhd.start_daemon(...). */
#ifndef OPSCOPE_SERVE_MHD_H
#define OPSCOPE_SERVE_MHD_H

#include "base/err.h"

#include <microhttpd.h>

/* One row a function that is used. */
#define MHD_FUNCTIONS(ROW)              \
	ROW(add_response_header)        \
	ROW(create_response_from_buffer) \
	ROW(destroy_response)           \
	ROW(get_connection_info)        \
	ROW(get_connection_values_n)    \
	ROW(get_daemon_info)            \
	ROW(lookup_connection_value)    \
	ROW(queue_response)             \
	ROW(quiesce_daemon)             \
	ROW(resume_connection)          \
	ROW(start_daemon)               \
	ROW(stop_daemon)                \
	ROW(suspend_connection)

#define MHD_MEMBER(name) __typeof__(MHD_##name) *name;
extern struct mhd {
	MHD_FUNCTIONS(MHD_MEMBER)
} mhd;
#undef MHD_MEMBER

/* To be called before anything of `mhd`, as often as wanted, by one thread at a time. ERR_IO. */
int mhd_load(struct err *e);

#endif
