/* Tables of what ran on the CPU, and those that describe the capture. */
#include "input/cbid.h"
#include "input/nvprof/nvprof.h"

enum { CALL_CBID, CALL_START, CALL_END, CALL_PID, CALL_TID, CALL_CORRELATION, CALL_RESULT };
static const char *const call_columns[] = {"cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue", NULL};

static uint32_t nvprof_host_call_name(struct nvprof *n, const char *name, int64_t cbid)
{
	struct buf b = {0};
	if (name)
		return intern_str(&n->p->strings, str_from(name));
	NVPROF_DIAG(n, "unknown-call", DIAG_NOTE, ": no API call has the number %lld: it is shown as 'cbid %lld'", (long long)cbid, (long long)cbid);
	buf_printf(&b, "cbid %lld", (long long)cbid);
	return nvprof_intern_buf(n, &b);
}

static void nvprof_host_call_row(struct nvprof *n, const struct sqlscan *s, const char *(*name_of)(int64_t cbid))
{
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .kind = SPAN_CALL, .cat = n->cat};
	int64_t cbid = nvprof_int(n, s, CALL_CBID, 0), result = nvprof_int(n, s, CALL_RESULT, 0);
	if (!nvprof_times(n, s, CALL_START, CALL_END, &r.start_ns, &r.dur_ns))
		return;
	r.name = nvprof_host_call_name(n, name_of(cbid), cbid);
	r.link_id = nvprof_int(n, s, CALL_CORRELATION, ID_NONE);
	r.track = nvprof_thread_track(n, nvprof_int(n, s, CALL_PID, 0), nvprof_int(n, s, CALL_TID, 0));
	if (result) {
		struct buf v = {0};
		buf_i64(&v, result);
		struct arg_pair pair = {intern_str(&n->p->strings, STR("returnValue")), nvprof_intern_buf(n, &v), 0};
		r.args = build_args(&n->b, &pair, 1);
	}
	build_span(&n->b, &r);
}

static void runtime_row(struct nvprof *n, const struct sqlscan *s) { nvprof_host_call_row(n, s, cbid_runtime); }
static void driver_row(struct nvprof *n, const struct sqlscan *s) { nvprof_host_call_row(n, s, cbid_driver); }

enum { OVER_START, OVER_END, OVER_WHAT, OVER_KIND, OVER_ID };
static const char *const overhead_columns[] = {"start", "end", "overheadKind", "objectKind", "objectId", NULL};

/* CUpti_ActivityOverheadKind, named as Kineto names them. */
static struct str nvprof_host_overhead_name(int64_t kind)
{
	static const char *const cupti[] = {"Unknown", "Buffer Flush", "Instrumentation", "Resource", "Runtime Triggered Module Loading",
		"Lazy Function Loading", "Command Buffer Full", "Activity Buffer Request", "UVM Activity Init"};
	if (kind == 1)
		return STR("Driver Compiler");
	bool known = kind >= 0 && !(kind & 0xffff) && kind >> 16 < (int64_t)(sizeof cupti / sizeof cupti[0]);
	return str_from(cupti[known ? kind >> 16 : 0]);
}

static void nvprof_host_overhead_row(struct nvprof *n, const struct sqlscan *s)
{
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .link_id = ID_NONE, .kind = SPAN_OVERHEAD, .cat = n->cat};
	if (!nvprof_times(n, s, OVER_START, OVER_END, &r.start_ns, &r.dur_ns))
		return;
	struct nvprof_object o = nvprof_object(n, s, OVER_KIND, OVER_ID);
	r.name = intern_str(&n->p->strings, nvprof_host_overhead_name(nvprof_int(n, s, OVER_WHAT, 0)));
	r.track = nvprof_object_track(n, &o);
	build_span(&n->b, &r);
}

/* OpenACC and OpenMP: what the directives of a program did, by the thread that did it. */
enum { ACC_START, ACC_END, ACC_EVENT, ACC_PID, ACC_TID, ACC_LINE, ACC_FILE, ACC_FUNCTION, ACC_BYTES, ACC_VARIABLE, ACC_KERNEL };
static const char *const acc_columns[] = {"start", "end", "eventKind", "cuProcessId", "cuThreadId", "lineNo", "srcFile", "funcName", "bytes",
                                          "varName", "kernelName", NULL};

/* "compute_construct@file.c:12", as nvprof prints them. */
static uint32_t acc_name(struct nvprof *n, const struct sqlscan *s)
{
	static const char *const event[] = {"unknown", "device_init", "device_shutdown", "runtime_shutdown", "enqueue_launch", "enqueue_upload",
		"enqueue_download", "wait", "implicit_wait", "compute_construct", "update", "enter_data", "exit_data", "create", "delete", "alloc", "free"};
	int64_t kind = nvprof_int(n, s, ACC_EVENT, 0), line = nvprof_int(n, s, ACC_LINE, 0), file = nvprof_int(n, s, ACC_FILE, 0);
	struct buf b = {0};
	buf_printf(&b, "acc_%s", event[kind > 0 && kind < (int64_t)(sizeof event / sizeof event[0]) ? kind : 0]);
	if (file > 0)
		buf_printf(&b, "@" STR_FMT ":%lld", STR_ARG(nvprof_text(n, file)), (long long)line);
	return nvprof_intern_buf(n, &b);
}

static uint32_t acc_args(struct nvprof *n, const struct sqlscan *s)
{
	static const struct { int column; const char *key; } text[] = {{ACC_FUNCTION, "Function"}, {ACC_VARIABLE, "Variable"}, {ACC_KERNEL, "Kernel"}};
	struct arg_pair pair[4];
	unsigned k = 0;
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
		int64_t id = nvprof_int(n, s, text[i].column, 0);
		if (id > 0)
			pair[k++] = (struct arg_pair){intern_str(&n->p->strings, str_from(text[i].key)), nvprof_intern(n, id), 1};
	}
	int64_t bytes = nvprof_int(n, s, ACC_BYTES, 0);
	if (bytes) {
		struct buf v = {0};
		buf_i64(&v, bytes);
		pair[k++] = (struct arg_pair){intern_str(&n->p->strings, STR("bytes")), nvprof_intern_buf(n, &v), 0};
	}
	return build_args(&n->b, pair, k);
}

static void acc_row(struct nvprof *n, const struct sqlscan *s)
{
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .link_id = ID_NONE, .kind = SPAN_OP, .cat = n->cat};
	if (!nvprof_times(n, s, ACC_START, ACC_END, &r.start_ns, &r.dur_ns))
		return;
	r.name = acc_name(n, s);
	r.args = acc_args(n, s);
	r.track = nvprof_thread_track(n, nvprof_int(n, s, ACC_PID, 0), nvprof_int(n, s, ACC_TID, 0));
	build_span(&n->b, &r);
}

static void omp_row(struct nvprof *n, const struct sqlscan *s)
{
	static const char *const event[] = {"unknown", "parallel", "task", "thread", "idle", "wait_barrier", "wait_taskwait"};
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .link_id = ID_NONE, .kind = SPAN_OTHER, .cat = n->cat};
	if (!nvprof_times(n, s, ACC_START, ACC_END, &r.start_ns, &r.dur_ns))
		return;
	int64_t kind = nvprof_int(n, s, ACC_EVENT, 0);
	struct buf b = {0};
	buf_printf(&b, "omp_%s", event[kind > 0 && kind < (int64_t)(sizeof event / sizeof event[0]) ? kind : 0]);
	r.name = nvprof_intern_buf(n, &b);
	r.track = nvprof_thread_track(n, nvprof_int(n, s, ACC_PID, 0), nvprof_int(n, s, ACC_TID, 0));
	build_span(&n->b, &r);
}

/* What encloses stands before what it encloses: rows of equal times keep this order. */
const struct nvprof_table nvprof_host_tables[] = {
	{"MARKER", nvprof_marker_columns, nvprof_marker_row, NULL, 0},
	{"OPENACC_OTHER", acc_columns, acc_row, "openacc", 'X'},
	{"OPENACC_DATA", acc_columns, acc_row, "openacc", 'X'},
	{"OPENACC_LAUNCH", acc_columns, acc_row, "openacc", 'X'},
	{"OPENMP", acc_columns, omp_row, "openmp", 'X'},
	{"RUNTIME", call_columns, runtime_row, "cuda_runtime", 'X'},
	{"DRIVER", call_columns, driver_row, "cuda_driver", 'X'},
	{"OVERHEAD", overhead_columns, nvprof_host_overhead_row, "overhead", 'X'},
	{0},
};

static int32_t nvprof_host_in_i32(int64_t v, int32_t absent) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : absent; }

enum { GPU_ID, GPU_NAME, GPU_MEMORY, GPU_SMS, GPU_WARP, GPU_WARPS, GPU_MAJOR, GPU_MINOR };
static const char *const device_columns[] = {"id", "name", "globalMemorySize", "numMultiprocessors", "numThreadsPerWarp",
	"maxWarpsPerMultiprocessor", "computeCapabilityMajor", "computeCapabilityMinor", NULL};

static void nvprof_host_device_row(struct nvprof *n, const struct sqlscan *s)
{
	int64_t id = nvprof_int(n, s, GPU_ID, -1), bytes = nvprof_int(n, s, GPU_MEMORY, 0);
	struct devices *d = &n->p->device;
	if (id < 0 || id > INT32_MAX || idmap_get(&n->device_row, id) != IDMAP_NONE)
		return;
	uint32_t i = rows_push(d, &store_tables[TABLE_device]);
	idmap_put(&n->device_row, id, i);
	d->id[i] = (int32_t)id;
	d->name[i] = nvprof_intern(n, nvprof_int(n, s, GPU_NAME, -1));
	d->memory_bytes[i] = bytes < 0 ? 0 : bytes;
	d->sm_count[i] = nvprof_host_in_i32(nvprof_int(n, s, GPU_SMS, 0), 0);
	d->warp_size[i] = nvprof_host_in_i32(nvprof_int(n, s, GPU_WARP, 0), 0);
	int64_t warps = nvprof_host_in_i32(nvprof_int(n, s, GPU_WARPS, 0), 0);
	d->max_threads_per_sm[i] = nvprof_host_in_i32(warps * d->warp_size[i], 0);
	d->cc_major[i] = nvprof_host_in_i32(nvprof_int(n, s, GPU_MAJOR, -1), -1);
	d->cc_minor[i] = nvprof_host_in_i32(nvprof_int(n, s, GPU_MINOR, -1), -1);
}

enum { CONTEXT_ID, CONTEXT_DEVICE };
static const char *const context_columns[] = {"contextId", "deviceId", NULL};

static void nvprof_host_context_row(struct nvprof *n, const struct sqlscan *s)
{
	int64_t context, device;
	if (sqlscan_i64(s, CONTEXT_ID, &context) && sqlscan_i64(s, CONTEXT_DEVICE, &device) && device >= 0 && device <= INT32_MAX)
		idmap_put(&n->context_device, context, (uint32_t)device);
}

enum { STREAM_CONTEXT, STREAM_ID };
static const char *const stream_columns[] = {"contextId", "streamId", NULL};

static void stream_row(struct nvprof *n, const struct sqlscan *s)
{
	int64_t context, stream;
	if (sqlscan_i64(s, STREAM_CONTEXT, &context) && sqlscan_i64(s, STREAM_ID, &stream))
		nvprof_stream_on(n, stream, nvprof_context_device(n, context));
}

enum { NAME_KIND, NAME_OBJECT, NAME_TEXT };
static const char *const name_columns[] = {"objectKind", "objectId", "name", NULL};

/* A process is named on all its tracks, once they are there; nvprof names one. */
static void name_row(struct nvprof *n, const struct sqlscan *s)
{
	struct nvprof_object o = nvprof_object(n, s, NAME_KIND, NAME_OBJECT);
	uint32_t name = nvprof_intern(n, nvprof_int(n, s, NAME_TEXT, -1));
	if (o.kind == NVPROF_PROCESS)
		idmap_put(&n->process_name, o.pid, name);
	else if (o.kind == NVPROF_THREAD || o.kind == NVPROF_STREAM) {
		uint32_t track = nvprof_object_track(n, &o);
		n->p->track.thread_name[track] = name;
	}
}

static const char *const version_columns[] = {"version", NULL};

static void version_row(struct nvprof *n, const struct sqlscan *s)
{
	enum { OLDEST = 8, NEWEST = 18 };
	int64_t version = nvprof_int(n, s, 0, -1);
	struct buf v = {0};
	buf_i64(&v, version);
	build_meta(&n->b, intern_str(&n->p->strings, STR("nvprof database version")), nvprof_intern_buf(n, &v), false);
	if (version < OLDEST || version > NEWEST)
		diag_add(&n->p->diags, "unknown-version", DIAG_NOTE, -1, "the database says that its version is %lld; known are %d to %d: it is read by the names of its columns",
		         (long long)version, OLDEST, NEWEST);
}

/* Names last: streams and threads are named whether or not anything runs on them. */
const struct nvprof_table nvprof_info_tables[] = {
	{"Version", version_columns, version_row, "Version", 'M'},
	{"DEVICE", device_columns, nvprof_host_device_row, "CUPTI_ACTIVITY_KIND_DEVICE", 'M'},
	{"CONTEXT", context_columns, nvprof_host_context_row, "CUPTI_ACTIVITY_KIND_CONTEXT", 'M'},
	{"STREAM", stream_columns, stream_row, "CUPTI_ACTIVITY_KIND_STREAM", 'M'},
	{"NAME", name_columns, name_row, "CUPTI_ACTIVITY_KIND_NAME", 'M'},
	{0},
};
