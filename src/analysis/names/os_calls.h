/* What the calls of the operating system's libraries (SPAN_OS) do, by name: rows of os_calls.def. For the report osrt, and for whoever looks for
 * what a thread did while a device had nothing to do. */
#ifndef OPSCOPE_ANALYSIS_NAMES_OS_CALLS_H
#define OPSCOPE_ANALYSIS_NAMES_OS_CALLS_H

#include "store/profile.h"

/* X(id, name that reports show, whether such a call waits for something else to happen) */
#define OS_CALL_KINDS(X)                                                                                            \
	X(OTHER, "other", false) X(FILE, "file I/O", false) X(NET, "network", false) X(POLL, "wait for I/O", true) X(LOCK, "lock", true) \
	X(SLEEP, "sleep", true) X(DRIVER, "driver", false) X(PROCESS, "process", false) X(MEMORY, "memory", false) X(THREAD, "thread", false) \
	X(NONE, "", false)

enum os_call_kind {
#define OS_CALL_KIND_ID_(id, name, waits) OS_CALL_##id,
	OS_CALL_KINDS(OS_CALL_KIND_ID_)
	OS_CALL_KINDS_N
};
extern const char *const os_call_kind_name[OS_CALL_KINDS_N];
extern const bool os_call_waits[OS_CALL_KINDS_N];

/* OS_CALL_NONE: not a call. Some hundred comparisons: callers cache per name. */
enum os_call_kind os_call_kind_of(struct str name);

#endif
