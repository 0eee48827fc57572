#include "cupti.h"
#include "nvml.h"
#include "start.h"
#include "sys.h"
#include "writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cupti.owner where it was tried and did not come to be. */
static const pid_t NOBODY = -1;

/* ---- buffers ---- */

static void on_buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = cupti_is_on() ? cupti_buffer_take() : NULL;
	*size = *buffer ? CUPTI_BUFFER_BYTES : 0;
	*max_records = 0;
	if (!*buffer)
		lose(WIRE_LOST_BUFFERS, 1);
}

static void on_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t dropped = 0;
	if (!cupti_is_on() || !buffer)
		return;
	if (valid && valid <= size)
		cupti_take_records(buffer, valid);
	if (cupti.call.ActivityGetNumDroppedRecords && cupti.call.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_OK && dropped)
		lose(WIRE_LOST_DEVICE, dropped);
	cupti_buffer_give(buffer);
}

/* ---- set-up ---- */

/* What a kind is for: without NEEDED ones there is nothing to see, and the set-up is undone. */
enum need { NEEDED, USEFUL, GRAPHS_WHOLE, WITH_MEMORY, WITH_SYNC };
static const struct kind {
	uint32_t kind;
	enum need need;
	const char *what;
} kinds[] = {
	{CUPTI_DEVICE, USEFUL, "devices"},
	{CUPTI_CONTEXT, USEFUL, "contexts"},
	{CUPTI_STREAM, USEFUL, "streams"},
	{CUPTI_RUNTIME, NEEDED, "calls of the runtime API"},
	{CUPTI_DRIVER, NEEDED, "calls of the driver API"},
	{CUPTI_KERNEL, NEEDED, "kernels"}, /* the concurrent kind: the other one lets kernels wait for each other */
	{CUPTI_MEMCPY, NEEDED, "copies"},
	{CUPTI_PEER, USEFUL, "copies between GPUs"},
	{CUPTI_MEMSET, NEEDED, "sets"},
	{CUPTI_SYNC, USEFUL, "waits"},
	{CUPTI_OVERHEAD, USEFUL, "overhead"},
	{CUPTI_JIT, USEFUL, "compilation"},
	{CUPTI_GRAPH, GRAPHS_WHOLE, "whole graphs"},
	{CUPTI_MEMORY, WITH_MEMORY, "allocations"},
	{CUPTI_EVENT, WITH_SYNC, "events"},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static bool is_option(const char *name, const char *value)
{
	const char *v = option(name);
	return v && strcmp(v, value) == 0;
}

static bool asked_for(const struct kind *k)
{
	switch (k->need) {
	case GRAPHS_WHOLE: return is_option("GRAPH", "graph");
	case WITH_MEMORY: return option("MEMORY") && !is_option("MEMORY", "0");
	case WITH_SYNC: return option("SYNC") && !is_option("SYNC", "0");
	default: return true;
	}
}

static const char *error_text(int error)
{
	const char *text = NULL;
	if (cupti.call.GetResultString && cupti.call.GetResultString(error, &text) == CUPTI_OK && text)
		return text;
	return "an unknown error";
}

/* Docker and podman leave these files, podman and systemd set the variable. */
static bool is_container(void)
{
	return getenv("container") || access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
}

/* What has to be done on this machine. */
static const char *permission_how(void)
{
	return is_container() ? "start the container with --cap-add=SYS_ADMIN, or give the host's driver NVreg_RestrictProfilingToAdminUsers=0" :
	                        "record as root, or: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/profiling.conf, and reboot";
}

static void note_refused(const char *what, int error)
{
	if (error == CUPTI_NO_PRIVILEGES)
		note("cupti-no-permission", true, "no work of the GPU: the driver lets only administrators profile, says CUPTI of ", what, ". To allow it: ",
		     permission_how(), NULL);
	else if (error == CUPTI_NOT_INITIALIZED || error == CUPTI_UNKNOWN)
		note("cupti-not-initialized", true, "no work of the GPU: CUPTI could not be initialised (no GPU, or a driver that does not fit it): ",
		     error_text(error), NULL);
	else
		note("cupti-refused", true, "no work of the GPU: CUPTI refused ", what, ": ", error_text(error), NULL);
}

static bool subscribe(void)
{
	char other[CUPTI_NAME_BYTES] = "";
	struct cupti_subscriber_params p = {.structSize = sizeof p, .subscriberName = "opscope", .oldSubscriberName = other, .oldSubscriberSize = sizeof other};
	int error = cupti.call.Subscribe_v2 ? cupti.call.Subscribe_v2(&cupti.subscriber, cupti_on_callback, NULL, &p) :
	                                      cupti.call.Subscribe(&cupti.subscriber, cupti_on_callback, NULL);
	other[sizeof other - 1] = 0;
	if (error == CUPTI_OTHER_SUBSCRIBER || error == CUPTI_LIMIT_REACHED)
		note("cupti-busy", true, "no work of the GPU: another profiler owns CUPTI in this process", other[0] ? ": " : "", other, NULL);
	else if (error != CUPTI_OK)
		note_refused("a subscriber", error);
	return error == CUPTI_OK;
}

/* CUPTI stamps with CLOCK_REALTIME where it runs on Linux; elsewhere it is given our clock, before any kind is enabled. */
static uint64_t realtime(void) { return (uint64_t)now_ns(); }

static void same_clock(void)
{
	enum { CLOSE_NS = 1000000000 };
	uint64_t theirs;
	if (!cupti.call.GetTimestamp || cupti.call.GetTimestamp(&theirs) != CUPTI_OK)
		return;
	int64_t apart = (int64_t)(theirs - realtime());
	if (apart > -CLOSE_NS && apart < CLOSE_NS)
		return;
	if (!cupti.call.ActivityRegisterTimestampCallback || cupti.call.ActivityRegisterTimestampCallback(realtime) != CUPTI_OK)
		note("cupti-clock", true, "CUPTI counts time by another clock: its records are left out", NULL);
}

static bool enable_kinds(void)
{
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (!asked_for(&kinds[i]))
			continue;
		int error = cupti.call.ActivityEnable(kinds[i].kind);
		if (error == CUPTI_OK)
			continue;
		if (kinds[i].need == NEEDED) {
			note_refused(kinds[i].what, error);
			while (i--)
				if (asked_for(&kinds[i]))
					cupti.call.ActivityDisable(kinds[i].kind);
			return false;
		}
		if (error != CUPTI_INVALID_KIND || kinds[i].need != USEFUL) /* a version that has no such records need not be mentioned */
			note(kinds[i].need == WITH_MEMORY ? "cupti-no-memory" : kinds[i].need == GRAPHS_WHOLE ? "cupti-no-whole-graphs" : "cupti-fewer-kinds", true,
			     "CUPTI does not record ", kinds[i].what, ": ", error_text(error), NULL);
	}
	return true;
}

/* Functions that say nothing of the run and are called by the million. */
static void leave_out_calls(void)
{
	static const uint32_t cbid[] = {CBID_GET_LAST_ERROR, CBID_PEEK_AT_LAST_ERROR, CBID_GET_DEVICE, CBID_EVENT_QUERY};
	for (unsigned i = 0; cupti.call.ActivityEnableRuntimeApi && i < sizeof cbid / sizeof cbid[0]; i++)
		cupti.call.ActivityEnableRuntimeApi(cbid[i], 0);
}

static bool cupti_set_up(void)
{
	enum { PERIOD_MS = 1000 };
	if (!subscribe())
		return false;
	if (cupti.call.SetThreadIdType)
		cupti.call.SetThreadIdType(CUPTI_THREAD_ID_SYSTEM);
	same_clock();
	int error = cupti.call.ActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
	if (error != CUPTI_OK)
		note_refused("buffers", error);
	if (error != CUPTI_OK || !enable_kinds()) {
		cupti.call.Unsubscribe(cupti.subscriber);
		return false;
	}
	*(void **)&cupti.stream_context = cuda_function("cuStreamGetCtx");
	cupti_enable_callbacks(!is_option("GRAPH", "graph"));
	leave_out_calls();
	if (cupti.call.ActivityFlushPeriod)
		cupti.call.ActivityFlushPeriod(PERIOD_MS);
	return true;
}

static void cupti_start(void)
{
	pid_t none = 0;
	if (is_option("CUPTI", "off") || !atomic_compare_exchange_strong(&cupti.owner, &none, NOBODY))
		return;
	cupti.start_ns = now_ns();
	if (!cupti_load(&cupti.call, &cupti.version))
		return;
	/* Owner before the set-up, which may already ask for buffers. */
	atomic_store(&cupti.owner, getpid());
	if (cupti_set_up())
		atomic_store(&cupti.ready, true);
	else
		atomic_store(&cupti.owner, NOBODY);
}

/* ---- while it runs ---- */

/* Another client (torch.profiler's, which does not ask whether it may) can replace our buffers and switch kinds off, and CUPTI says nothing of
 * it. So the library's own thread makes a call of the driver that does nothing, and expects its record soon after. Kernels that run for
 * seconds can hold a buffer back, hence the patience. */
static void look_for_thieves(void)
{
	enum { PATIENCE = 5 };
	static int (*get_version)(int *);
	static int64_t asked_ns;
	static int missed;
	int version;
	if (!get_version)
		*(void **)&get_version = cuda_function("cuDriverGetVersion");
	int64_t seen = atomic_load_explicit(&cupti.beat_ns, memory_order_relaxed);
	if (!get_version)
		return;
	if (seen && seen < asked_ns) {
		if (++missed == PATIENCE)
			note("cupti-taken-over", true, "the work of the GPU is missing from some moment on: CUPTI has handed over nothing for seconds, "
			     "as when another profiler in the program (torch.profiler) takes its buffers", NULL);
		return;
	}
	if (missed >= PATIENCE)
		note("cupti-back", false, "CUPTI hands over records again", NULL);
	missed = 0;
	asked_ns = now_ns();
	get_version(&version);
}

static void cupti_tick(void)
{
	if (!cupti_is_on() || !atomic_load(&cupti.ready))
		return;
	atomic_store_explicit(&cupti.thread, sys_tid(), memory_order_relaxed);
	look_for_thieves();
	cupti.call.ActivityFlushAll(0);
}

static void at_exit(void)
{
	if (cupti_is_on() && atomic_load(&cupti.ready))
		cupti.call.ActivityFlushAll(CUPTI_FLUSH_FORCED);
}

void cupti_end(void)
{
	nvml_end();
	if (!cupti_is_on() || !atomic_load(&cupti.ready))
		return;
	cupti.call.ActivityFlushAll(CUPTI_FLUSH_FORCED);
	for (unsigned i = 0; i < N_KINDS; i++)
		if (asked_for(&kinds[i]))
			cupti.call.ActivityDisable(kinds[i].kind);
	cupti.call.Unsubscribe(cupti.subscriber);
	atomic_store(&cupti.ready, false);
	atomic_store(&cupti.owner, 0);
}

/* What is said of devices needs a segment. */
static _Atomic bool begins_later;

static void cupti_begin_(void)
{
	if (start_waits() || !atomic_exchange(&begins_later, false))
		return;
	if (start_on_demand()) { /* CUDA came while a recording went on */
		cupti_begin();
		return;
	}
	cupti_start();
	nvml_start();
}

static void cupti_add_hooks(void)
{
	static _Atomic int hooked;
	if (atomic_exchange(&hooked, 1) != 0)
		return;
	helper_each_second(cupti_begin_);
	helper_each_second(cupti_tick);
	helper_each_second(nvml_tick);
	helper_at_exit(at_exit);
}

void cupti_begin(void)
{
	pid_t nobody = NOBODY;
	if (!cuda_function("cuDriverGetVersion"))
		return;
	atomic_store(&begins_later, false);
	atomic_compare_exchange_strong(&cupti.owner, &nobody, 0); /* tried in vain before */
	atomic_store_explicit(&cupti.beat_ns, 0, memory_order_relaxed);
	cupti_add_hooks();
	cupti_describe_devices(); /* before CUPTI tells of calls of the driver */
	cupti_start();
	nvml_start();
}

/* Called by the driver in cuInit, once a process; it unloads a library that does not return 1. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	if (!start())
		return 1;
	helper_start();
	atomic_store(&begins_later, true);
	if (!start_on_demand())
		cupti_begin_();
	cupti_add_hooks();
	return 1;
}
