/* CUPTI: kernels, copies, sets, API calls and waits of the process, from the library that the process has itself or that is found.
 *
 * Life cycle (cupti.c): cuInit calls InitializeInjection, while the driver is not ready yet; records then come on threads of CUPTI's, and
 * each second on the library's own, which also notices when they no longer come; at the end of the process the rest is fetched. Whatever fails becomes a note, and the program goes on without. A forked
 * child inherits a CUPTI that is dead: nothing of it is ever called there. A process that was forked before CUDA was used may start its own. */
#ifndef OPSCOPE_COLLECT_CUPTI_H
#define OPSCOPE_COLLECT_CUPTI_H

#include "cupti_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Only what is optional may be NULL. */
#define CUPTI_CALLS(REQUIRED, OPTIONAL)                                                               \
	REQUIRED(GetVersion, (uint32_t *version))                                                     \
	REQUIRED(Subscribe, (void **subscriber, cupti_callback *callback, void *userdata))            \
	REQUIRED(Unsubscribe, (void *subscriber))                                                     \
	REQUIRED(EnableCallback, (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)) \
	REQUIRED(ActivityRegisterCallbacks, (cupti_buffer_requested *, cupti_buffer_completed *))     \
	REQUIRED(ActivityEnable, (uint32_t kind))                                                     \
	REQUIRED(ActivityDisable, (uint32_t kind))                                                    \
	REQUIRED(ActivityGetNextRecord, (uint8_t *buffer, size_t valid, uint8_t **record))            \
	REQUIRED(ActivityFlushAll, (uint32_t flags))                                                  \
	OPTIONAL(Subscribe_v2, (void **subscriber, cupti_callback *callback, void *userdata, struct cupti_subscriber_params *)) \
	OPTIONAL(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))     \
	OPTIONAL(ActivityFlushPeriod, (uint32_t ms))                                                  \
	OPTIONAL(ActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))                           \
	OPTIONAL(ActivityRegisterTimestampCallback, (uint64_t (*now)(void)))                          \
	OPTIONAL(SetThreadIdType, (int type))                                                         \
	OPTIONAL(GetTimestamp, (uint64_t *ns))                                                        \
	OPTIONAL(GetResultString, (int result, const char **text))                                    \
	OPTIONAL(GetCallbackName, (uint32_t domain, uint32_t cbid, const char **name))                \
	OPTIONAL(GetGraphNodeId, (void *node, uint64_t *id))                                          \
	OPTIONAL(GetGraphId, (void *graph, uint32_t *id))                                             \
	OPTIONAL(GetStreamIdEx, (void *context, void *stream, uint8_t per_thread, uint32_t *id))      \
	OPTIONAL(GetDeviceId, (void *context, uint32_t *device))

struct cupti_calls {
#define CUPTI_CALL_(name, arguments) int (*name) arguments;
	CUPTI_CALLS(CUPTI_CALL_, CUPTI_CALL_)
};

/* What there is of CUPTI in this process; written before CUPTI calls back for the first time, but for the atomics. */
struct cupti {
	struct cupti_calls call;
	void *subscriber;
	int (*stream_context)(void *stream, void **context); /* of the driver; NULL = it has none */
	uint32_t version;
	int64_t start_ns;
	_Atomic uint32_t thread;     /* the library's own: its calls are not the program's */
	_Atomic(pid_t) owner;        /* the process that subscribed; 0 = none */
	_Atomic bool ready;          /* set up: it may be asked to flush */
	_Atomic uint64_t devices;    /* bit i: the process has a context on device i */
	_Atomic int64_t beat_ns;     /* start of the last call of `thread` that came back as a record; 0 = none yet */
};
extern struct cupti cupti;

/* In a capture that the program makes of itself: with a driver in the process, from now on; and no more, when all that CUPTI holds is written. */
void cupti_begin(void);
void cupti_end(void);
/* Whether records are being taken in this process. */
bool cupti_is_on(void);

/* cupti_library.c: finds, loads and resolves. False and a note when there is none that can be used. */
bool cupti_load(struct cupti_calls *call, uint32_t *version);
/* A function of the driver that is in the process; NULL = none. Never loads it. */
void *cuda_function(const char *name);

/* cupti_buffers.c: memory that CUPTI fills; never malloc, whose lock the program may hold. */
enum { CUPTI_BUFFER_BYTES = 4 << 20 };
uint8_t *cupti_buffer_take(void); /* NULL = no more */
void cupti_buffer_give(uint8_t *buffer);

/* cupti_records.c: a buffer's records into the segment. Never calls CUPTI but for ActivityGetNextRecord. */
void cupti_take_records(uint8_t *buffer, size_t valid);

/* cupti_devices.c: all devices of the process, by the driver; for who comes when CUDA is initialised already. */
void cupti_describe_devices(void);

/* cupti_streams.c: the name of a stream, by its handle. */
void cupti_name_stream(void *stream, uint32_t text);
/* Whether a call of the driver was made by the above, and not by the program. */
bool cupti_is_own_call(uint32_t cbid, uint32_t thread, uint64_t start_ns, uint64_t end_ns);

/* cupti_callbacks.c: what the subscriber is called back for. */
extern cupti_callback *const cupti_on_callback;
void cupti_enable_callbacks(bool graph_nodes);

#endif
