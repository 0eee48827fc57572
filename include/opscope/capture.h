/* A capture that a program makes of itself, where `opscope record` was not put in front of it:
 *
 *   const char *library = "/usr/lib/x86_64-linux-gnu/opscope/libopscope-inject.so";
 *   struct opscope_capture_options o = {sizeof o, 0, "/tmp/run", 0};
 *   int error = opscope_capture_begin(library, &o);
 *   if (error)
 *           fprintf(stderr, "no capture: %s\n", strerror(-error));
 *   ... what is to be recorded: opscope_push("forward"), ...
 *   opscope_capture_end(library);                  // /tmp/run has a segment more: opscope report overview /tmp/run
 *
 * As often as the program wants; each capture is a segment of its own, and folders may differ. What is recorded: what the program or library that includes
 * this header says with opscope/trace.h; with a driver of CUDA in the process (cuInit called) the work of its devices, through CUPTI. Not NVTX and not ITT: copies
 * of them look for a listener when they are called first. Work of a device that has not ended when a capture ends is not in it: wait for the device before
 * (cudaDeviceSynchronize).
 *
 * begin and end may be called on any thread, never in a signal handler. All other threads may go on saying things meanwhile: what they say is in a capture,
 * or in none. A range that is open when a capture ends ends with it. Forked children are not recorded, and may begin captures of their own. A program that
 * ends by exit() without opscope_capture_end() leaves a whole capture; one that is killed, what it had said. Where the folder goes away meanwhile nothing
 * happens to the program: what was recorded is gone with it. */
#ifndef OPSCOPE_CAPTURE_H
#define OPSCOPE_CAPTURE_H

#include "opscope/trace.h"

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Members are only ever added at the end; `bytes` is sizeof of the version that the program was built with. The rest of it may be 0. */
struct opscope_capture_options {
	uint32_t bytes;
	uint32_t ring;       /* 1: beyond max_bytes the oldest events go; 0: no more come */
	const char *dir;     /* of the segment: there already; relative to the folder of the moment, read while begin runs */
	int64_t max_bytes;   /* of the segment; 0 = no bound. At least 2 MiB */
};

/* The capture library's own symbols, "opscope_capture_start" and "opscope_capture_stop". 0, or an errno, negative:
 *   start: -EBUSY     the process is recorded by `opscope record`, or another thread is beginning or ending a capture
 *          -EALREADY  a capture of this process goes on
 *          -EINVAL    the options make no sense
 *          others     why the segment could not be made: -EACCES, -ENOENT, -ENOSPC, ...
 *   stop:  -EBUSY     another thread is beginning or ending a capture
 *          -ESRCH     no capture goes on that this process began */
typedef int opscope_capture_start_fn(const struct opscope_capture_options *options);
typedef int opscope_capture_stop_fn(void);

/* The library, once loaded, stays. NULL = `library` cannot be loaded (dlerror says why), or has no such function. */
OPSCOPE_UNUSED_ static inline void *opscope_capture_function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	return handle ? dlsym(handle, name) : NULL;
}

/* `library`: path of libopscope-inject.so. As start above; -ELIBACC: it cannot be loaded, or is older than this header. */
OPSCOPE_UNUSED_ static inline int opscope_capture_begin(const char *library, const struct opscope_capture_options *options)
{
	void *start = opscope_capture_function(library, "opscope_capture_start"), *look = opscope_capture_function(library, "opscope_trace_get");
	opscope_capture_start_fn *begin = NULL;
	opscope_trace_get_fn *get = NULL;
	const struct opscope_trace_table *table;
	int error;
	memcpy(&begin, &start, sizeof begin);
	memcpy(&get, &look, sizeof get);
	error = begin && get ? begin(options) : -ELIBACC;
	table = error ? NULL : get(OPSCOPE_TRACE_VERSION);
	if (table)
		__atomic_store_n(&opscope_trace_found, table, __ATOMIC_RELEASE);
	return error;
}

/* As stop above; -ELIBACC as at begin. */
OPSCOPE_UNUSED_ static inline int opscope_capture_end(const char *library)
{
	void *stop = opscope_capture_function(library, "opscope_capture_stop");
	opscope_capture_stop_fn *end = NULL;
	memcpy(&end, &stop, sizeof end);
	return end ? end() : -ELIBACC;
}

#ifdef __cplusplus
}
#endif
#endif
