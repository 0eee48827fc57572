/* Tables that describe the capture: versions, the machine, its GPUs, processes and threads, and what nsys itself had to say. */
#include "input/nsys/nsys.h"

static void nsys_info_put_meta(struct nsys *n, const char *prefix, struct str name, struct str value)
{
	struct buf b = {0};
	buf_cstr(&b, prefix);
	buf_str(&b, name);
	build_meta(&n->b, intern_put(&n->p->strings, b.p, b.n), intern_str(&n->p->strings, value), true);
	buf_release(&b);
}

enum { META_NAME, META_VALUE };
static const char *const meta_columns[] = {"name", "value", NULL};

static void export_row(struct nsys *n, const struct sqlscan *s)
{
	nsys_info_put_meta(n, "", sqlscan_str(s, META_NAME), sqlscan_str(s, META_VALUE));
}

static void capture_row(struct nsys *n, const struct sqlscan *s)
{
	nsys_info_put_meta(n, "capture:", sqlscan_str(s, META_NAME), sqlscan_str(s, META_VALUE));
}

static void system_row(struct nsys *n, const struct sqlscan *s)
{
	nsys_info_put_meta(n, "system:", sqlscan_str(s, META_NAME), sqlscan_str(s, META_VALUE));
}

/* Each column of the row that is there becomes a fact. */
static void nsys_info_put_columns(struct nsys *n, const struct sqlscan *s, const char *prefix, const char *const *columns)
{
	for (int c = 0; columns[c]; c++) {
		struct buf b = {0};
		int64_t v;
		if (sqlscan_i64(s, c, &v))
			buf_i64(&b, v);
		else
			buf_str(&b, sqlscan_str(s, c));
		if (!sqlscan_is_null(s, c))
			nsys_info_put_meta(n, prefix, str_from(columns[c]), buf_view(&b));
		buf_release(&b);
	}
}

static const char *const session_columns[] = {"utcEpochNs", "utcTime", "localTime", "systemClockNs", NULL};
static void session_row(struct nsys *n, const struct sqlscan *s) { nsys_info_put_columns(n, s, "session:", session_columns); }

static const char *const details_columns[] = {"duration", "startTime", "stopTime", NULL};
static void details_row(struct nsys *n, const struct sqlscan *s) { nsys_info_put_columns(n, s, "analysis:", details_columns); }

/* DLProf adds a table of its own to the databases that it reads; here under the names that its own database has for the same facts. */
static const char *const dlprof_columns[] = {"cpuModel", "driverVersion", "framework", "cudaVersion", "cudnnVersion", "nsysVersion", NULL};
static void dlprof_row(struct nsys *n, const struct sqlscan *s)
{
	static const char *const facts[] = {"cpu_model", "driver_version", "framework", "cuda_version", "cudnn_version", "nsys_version"};
	for (int c = 0; dlprof_columns[c]; c++)
		if (sqlscan_str(s, c).n)
			nsys_info_put_meta(n, "system_config:", str_from(facts[c]), sqlscan_str(s, c));
}

static int32_t nsys_info_in_i32(int64_t v, int32_t absent) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : absent; }

/* The same facts under the column names of TARGET_INFO_GPU, and of the tables that 2020.x had instead. */
enum { GPU_ID, GPU_NAME, GPU_MEMORY, GPU_SMS, GPU_WARP, GPU_WARPS, GPU_MAJOR, GPU_MINOR };
static const char *const gpu_columns[] = {"id", "name", "totalMemory", "smCount", "threadsPerWarp", "maxWarpsPerSm", "computeMajor",
                                          "computeMinor", NULL};
static const char *const cuda_gpu_columns[] = {"deviceId", "name", "globalMemorySize", "numMultiprocessors", "numThreadsPerWarp",
                                               "maxWarpsPerMultiprocessor", "computeCapabilityMajor", "computeCapabilityMinor", NULL};

static void gpu_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t id = nsys_int(n, s, GPU_ID, -1);
	struct devices *d = &n->p->device;
	if (id < 0 || id > INT32_MAX)
		return; /* the thin table of 2020.x: TARGET_INFO_CUDA_GPU says more */
	if (idmap_get(&n->device_row, id) != IDMAP_NONE)
		return; /* 2020.x lists a GPU once for each process */
	uint32_t i = rows_push(d, &store_tables[TABLE_device]);
	idmap_put(&n->device_row, id, i);
	d->id[i] = (int32_t)id;
	d->name[i] = nsys_intern_cell(n, s, GPU_NAME);
	d->memory_bytes[i] = nsys_int(n, s, GPU_MEMORY, 0);
	d->memory_bytes[i] = d->memory_bytes[i] < 0 ? 0 : d->memory_bytes[i];
	d->sm_count[i] = nsys_info_in_i32(nsys_int(n, s, GPU_SMS, 0), 0);
	d->warp_size[i] = nsys_info_in_i32(nsys_int(n, s, GPU_WARP, 0), 0);
	int64_t warps = nsys_info_in_i32(nsys_int(n, s, GPU_WARPS, 0), 0);
	d->max_threads_per_sm[i] = nsys_info_in_i32(warps * d->warp_size[i], 0);
	d->cc_major[i] = nsys_info_in_i32(nsys_int(n, s, GPU_MAJOR, -1), -1);
	d->cc_minor[i] = nsys_info_in_i32(nsys_int(n, s, GPU_MINOR, -1), -1);
}

enum { MAP_GPU, MAP_CUDA, MAP_PID };
static const char *const map_columns[] = {"gpuId", "cudaId", "pid", NULL};

static void map_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t gpu, key[2];
	if (!sqlscan_i64(s, MAP_GPU, &gpu) || !sqlscan_i64(s, MAP_CUDA, &key[1]) || !sqlscan_i64(s, MAP_PID, &key[0]) ||
	    gpu < 0 || gpu > INT32_MAX)
		return;
	uint32_t at = intern_put(&n->devices_of, (const char *)key, sizeof key);
	MEM_GROW(n->gpu_id, n->cap_gpu_ids, at + 1);
	n->gpu_id[at] = (int32_t)gpu;
}

/* Device and context are numbered within the process. */
enum { CONTEXT_PID, CONTEXT_ID, CONTEXT_DEVICE };
static const char *const context_columns[] = {"processId", "contextId", "deviceId", NULL};

static void nsys_info_context_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t pid;
	if (sqlscan_i64(s, CONTEXT_PID, &pid))
		nsys_context_on(n, pid, nsys_int(n, s, CONTEXT_ID, -1), nsys_int(n, s, CONTEXT_DEVICE, -1));
}

enum { PROCESS_GLOBAL, PROCESS_NAME };
static const char *const process_columns[] = {"globalPid", "name", NULL};

static void process_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t global;
	if (sqlscan_i64(s, PROCESS_GLOBAL, &global) && !sqlscan_is_null(s, PROCESS_NAME))
		idmap_put(&n->process_name, nsys_pid(global), nsys_intern_cell(n, s, PROCESS_NAME));
}

enum { THREAD_GLOBAL, THREAD_NAME };
static const char *const thread_columns[] = {"globalTid", "nameId", NULL};

static void thread_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t global, name;
	if (sqlscan_i64(s, THREAD_GLOBAL, &global) && sqlscan_i64(s, THREAD_NAME, &name))
		idmap_put(&n->thread_name, nsys_pid(global) << 24 | nsys_tid(global), nsys_intern(n, name));
}

/* What nsys said while it recorded. Warnings and errors are problems of this file, too. */
enum { SAID_TIME, SAID_SEVERITY, SAID_TEXT, SAID_PID };
static const char *const said_columns[] = {"timestamp", "severity", "text", "globalPid", NULL};
enum { SEVERITY_WARNING = 2, SEVERITY_ERROR = 3 };

static void said_row(struct nsys *n, const struct sqlscan *s)
{
	struct str text = sqlscan_str(s, SAID_TEXT);
	int64_t at, severity = nsys_int(n, s, SAID_SEVERITY, 0);
	uint16_t cat = nsys_cat(n, "nsys");
	uint32_t track = build_track(&n->b, STR("nsys"), STR("nsys"));
	build_count(&n->b, cat, 'i', 1);
	if (sqlscan_i64(s, SAID_TIME, &at))
		build_mark(&n->b, at, intern_str(&n->p->strings, text), track, 0, cat, 'i');
	if (severity == SEVERITY_ERROR)
		diag_add(&n->p->diags, "capture-error", DIAG_NOTE, -1, "nsys reported while recording: " STR_FMT, STR_ARG(text));
	else if (severity == SEVERITY_WARNING)
		diag_add(&n->p->diags, "capture-warning", DIAG_NOTE, -1, "nsys warned while recording: " STR_FMT, STR_ARG(text));
}

/* TARGET_INFO_CUDA_GPU before TARGET_INFO_GPU: where both are there, it says more. */
const struct nsys_table nsys_info_tables[] = {
	{"EXPORT_META_DATA", meta_columns, export_row, NULL, 'M'},
	{"META_DATA_EXPORT", meta_columns, export_row, NULL, 'M'},
	{"META_DATA_CAPTURE", meta_columns, capture_row, NULL, 'M'},
	{"TARGET_INFO_SESSION_START_TIME", session_columns, session_row, NULL, 'M'},
	{"ANALYSIS_DETAILS", details_columns, details_row, NULL, 'M'},
	{"TARGET_INFO_SYSTEM_ENV", meta_columns, system_row, NULL, 'M'},
	{"SystemInfo", dlprof_columns, dlprof_row, NULL, 'M'},
	{"TARGET_INFO_CUDA_GPU", cuda_gpu_columns, gpu_row, NULL, 'M'},
	{"TARGET_INFO_GPU", gpu_columns, gpu_row, NULL, 'M'},
	{"TARGET_INFO_CUDA_DEVICE", map_columns, map_row, NULL, 'M'},
	{"TARGET_INFO_CUDA_CONTEXT_INFO", context_columns, nsys_info_context_row, NULL, 'M'},
	{"TARGET_INFO_CUDA_NULL_STREAM", context_columns, nsys_info_context_row, NULL, 'M'},
	{"PROCESSES", process_columns, process_row, NULL, 'M'},
	{"ThreadNames", thread_columns, thread_row, NULL, 'M'},
	{"DIAGNOSTIC_EVENT", said_columns, said_row, NULL, 0},
	{0},
};
