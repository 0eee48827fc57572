/* Tables of work on the GPU. Kernels, copies and sets are named and filed as Kineto does it, so that all reports treat them
 * alike (libkineto's cuda_activity classes). */
#include "input/nsys/nsys.h"

#include "input/cupti.h"

static int32_t nsys_gpu_small(int64_t v) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : INT32_MIN; }

/* Of these names the first columns of every such table. */
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PID, GRAPH_NODE, GRAPH, OWN };
#define COMMON_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId", "graphId"

static int64_t nsys_gpu_unless_zero(int64_t v) { return v ? v : ID_NONE; }

/* The launch as far as all tables tell it; the track goes to *track. */
static struct launch_row nsys_gpu_launch_of(struct nsys *n, const struct sqlscan *s, uint32_t *track)
{
	struct launch_row l = launch_none();
	int64_t global = nsys_int(n, s, PID, ID_NONE);
	if (global != ID_NONE)
		l.pid = nsys_pid(global);
	int64_t cuda_id = nsys_int(n, s, DEVICE, -1);
	l.device = nsys_device(n, cuda_id, l.pid);
	l.context = nsys_int(n, s, CONTEXT, ID_NONE);
	nsys_context_on(n, l.pid, l.context, cuda_id);
	l.stream = nsys_int(n, s, STREAM, ID_NONE);
	l.graph_node_id = nsys_gpu_unless_zero(nsys_int(n, s, GRAPH_NODE, 0));
	l.graph_id = nsys_gpu_unless_zero(nsys_int(n, s, GRAPH, 0));
	*track = nsys_stream_track(n, l.device == INT32_MIN ? -1 : l.device, l.stream == ID_NONE ? -1 : l.stream, l.pid);
	return l;
}

static void nsys_gpu_add(struct nsys *n, const struct sqlscan *s, struct gpu_row *r, const struct launch_row *l, const char *cat)
{
	bool open;
	r->cat = nsys_cat(n, cat);
	nsys_count(n, r->cat);
	if (!nsys_times(n, s, START, END, &r->start_ns, &r->dur_ns, &open))
		return;
	if (open)
		NSYS_DIAG(n, "no-end", DIAG_REPAIR, " has no end: its duration is taken as 0");
	r->launch = build_launch(&n->b, l);
	r->ext_id = ID_NONE;
	r->corr_id = nsys_int(n, s, CORRELATION, ID_NONE);
	build_gpu(&n->b, r);
}

enum { DEMANGLED = OWN, SHORT, MANGLED, REGISTERS, GRID_X, GRID_Y, GRID_Z, BLOCK_X, BLOCK_Y, BLOCK_Z, STATIC_SHARED, DYNAMIC_SHARED };
static const char *const kernel_columns[] = {COMMON_COLUMNS, "demangledName", "shortName", "mangledName", "registersPerThread",
	"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", NULL};

static uint32_t kernel_name(struct nsys *n, const struct sqlscan *s)
{
	int64_t id;
	for (int c = DEMANGLED; c <= MANGLED; c++)
		if (sqlscan_i64(s, c, &id) && string_table_find(&n->strings, id))
			return nsys_intern(n, id);
	return nsys_intern(n, nsys_int(n, s, DEMANGLED, -1));
}

static void nsys_gpu_kernel_row(struct nsys *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_KERNEL, .name = kernel_name(n, s)};
	struct launch_row l = nsys_gpu_launch_of(n, s, &r.track);
	int32_t *const to[] = {&l.registers, &l.grid_x, &l.grid_y, &l.grid_z, &l.block_x, &l.block_y, &l.block_z};
	for (int c = 0; c < (int)(sizeof to / sizeof to[0]); c++)
		*to[c] = nsys_gpu_small(nsys_int(n, s, REGISTERS + c, -1));
	int64_t fixed = nsys_int(n, s, STATIC_SHARED, -1), dynamic = nsys_int(n, s, DYNAMIC_SHARED, -1);
	if (fixed >= 0 && dynamic >= 0 && fixed <= INT32_MAX && dynamic <= INT32_MAX)
		l.shared_bytes = nsys_gpu_small(fixed + dynamic);
	cupti_per_sm(&n->p->device, idmap_get(&n->device_row, l.device), &l);
	nsys_gpu_add(n, s, &r, &l, "kernel");
}

static struct str memory_kind(int64_t kind)
{
	static const char *const name[] = {"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
	return str_from(kind >= 0 && kind < (int64_t)(sizeof name / sizeof name[0]) ? name[kind] : "Unknown");
}

enum { COPY_BYTES = OWN, COPY_KIND, FROM_KIND, TO_KIND };
static const char *const memcpy_columns[] = {COMMON_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", NULL};

static uint32_t copy_name(struct nsys *n, int64_t kind, int64_t from, int64_t to)
{
	static const char *const name[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	                                   "HtoD", "DtoH", "DtoD"};
	enum { FIRST_UNIFIED = 11 };
	struct buf b = {0};
	bool known = kind >= 0 && kind < (int64_t)(sizeof name / sizeof name[0]);
	buf_printf(&b, "Memcpy %s (", known ? name[kind] : "Unknown");
	if (known && kind >= FIRST_UNIFIED)
		buf_cstr(&b, "Unified)");
	else
		buf_printf(&b, STR_FMT " -> " STR_FMT ")", STR_ARG(memory_kind(from)), STR_ARG(memory_kind(to)));
	uint32_t id = intern_put(&n->p->strings, b.p, b.n);
	buf_release(&b);
	return id;
}

static void nsys_gpu_memcpy_row(struct nsys *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_MEMCPY};
	r.name = copy_name(n, nsys_int(n, s, COPY_KIND, -1), nsys_int(n, s, FROM_KIND, -1), nsys_int(n, s, TO_KIND, -1));
	struct launch_row l = nsys_gpu_launch_of(n, s, &r.track);
	l.bytes = nsys_int(n, s, COPY_BYTES, ID_NONE);
	nsys_gpu_add(n, s, &r, &l, "gpu_memcpy");
}

enum { SET_BYTES = OWN, SET_KIND };
static const char *const memset_columns[] = {COMMON_COLUMNS, "bytes", "memKind", NULL};

static void nsys_gpu_memset_row(struct nsys *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_MEMSET};
	struct buf b = {0};
	buf_printf(&b, "Memset (" STR_FMT ")", STR_ARG(memory_kind(nsys_int(n, s, SET_KIND, -1))));
	r.name = intern_put(&n->p->strings, b.p, b.n);
	buf_release(&b);
	struct launch_row l = nsys_gpu_launch_of(n, s, &r.track);
	l.bytes = nsys_int(n, s, SET_BYTES, ID_NONE);
	nsys_gpu_add(n, s, &r, &l, "gpu_memset");
}

/* One row a launch of a whole graph, instead of its kernels: the default of nsys ("--cuda-graph-trace=graph"). */
static const char *const graph_columns[] = {COMMON_COLUMNS, "graphExecId", NULL};

static void nsys_gpu_graph_row(struct nsys *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_KERNEL};
	struct launch_row l = nsys_gpu_launch_of(n, s, &r.track);
	struct buf b = {0};
	buf_printf(&b, "CUDA graph %lld", (long long)nsys_int(n, s, GRAPH, 0));
	r.name = intern_put(&n->p->strings, b.p, b.n);
	buf_clear(&b);
	int64_t exec;
	if (sqlscan_i64(s, OWN, &exec)) {
		buf_i64(&b, exec);
		struct arg_pair pair = {intern_str(&n->p->strings, STR("graph exec id")), intern_put(&n->p->strings, b.p, b.n), 0};
		r.args = build_args(&n->b, &pair, 1);
	}
	buf_release(&b);
	diag_add(&n->p->diags, "whole-graphs", DIAG_NOTE, -1,
	         "CUDA graphs were recorded as a whole, without their kernels: record with `nsys profile --cuda-graph-trace=node`");
	nsys_gpu_add(n, s, &r, &l, "kernel");
}

enum { SYNC_EVENT = OWN };
static const char *const sync_columns[] = {COMMON_COLUMNS, "eventId", NULL};

/* What was waited for: the numbers in `syncType` mean different things in different versions (compared with the API calls of
 * exports from 2021.2 to 2026.2), but whether a stream and an event are stated always tells. */
static const char *sync_name(int64_t stream, int64_t event)
{
	if (stream == UINT32_MAX || stream < 0)
		return event == UINT32_MAX || event < 0 ? "Context Sync" : "Event Sync";
	return event == UINT32_MAX || event < 0 ? "Stream Sync" : "Stream Wait Event";
}

/* deviceId is 0 in this table whatever the context's device is, in the versions that were looked at (2026.2, 2026.3). */
static void nsys_gpu_sync_row(struct nsys *n, const struct sqlscan *s)
{
	bool open;
	int64_t stream = nsys_int(n, s, STREAM, -1), global = nsys_int(n, s, PID, ID_NONE);
	int64_t pid = global == ID_NONE ? ID_NONE : nsys_pid(global);
	stream = stream == UINT32_MAX ? -1 : stream;
	int64_t stated = nsys_int(n, s, DEVICE, -1);
	int32_t device = nsys_device(n, nsys_context_device(n, pid, nsys_int(n, s, CONTEXT, -1), stated), pid);
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .kind = SPAN_SYNC, .cat = nsys_cat(n, "cuda_sync")};
	nsys_count(n, r.cat);
	if (!nsys_times(n, s, START, END, &r.start_ns, &r.dur_ns, &open))
		return;
	r.link_id = nsys_int(n, s, CORRELATION, ID_NONE);
	r.name = intern_str(&n->p->strings, str_from(sync_name(stream, nsys_int(n, s, SYNC_EVENT, -1))));
	r.track = nsys_stream_track(n, device == INT32_MIN ? -1 : device, stream, pid);
	nsys_span(n, &r, open);
}

static void reserve_gpu(struct nsys *n, int64_t rows)
{
	uint64_t sum = (uint64_t)rows + n->p->gpu_op.rows.cap;
	if (sum >= NSYS_RESERVE_MIN && sum < ROW_NONE - 1)
		rows_reserve(&n->p->gpu_op, &store_tables[TABLE_gpu_op], (uint32_t)sum);
}

static void nsys_gpu_ignore_row(struct nsys *n, const struct sqlscan *s) { (void)n, (void)s; }
static const char *const no_columns[] = {NULL};

const struct nsys_table nsys_gpu_tables[] = {
	{"CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, nsys_gpu_kernel_row, reserve_gpu, 0},
	{"CUPTI_ACTIVITY_KIND_MEMCPY", memcpy_columns, nsys_gpu_memcpy_row, reserve_gpu, 0},
	{"CUPTI_ACTIVITY_KIND_MEMSET", memset_columns, nsys_gpu_memset_row, reserve_gpu, 0},
	{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, nsys_gpu_graph_row, reserve_gpu, 0},
	{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_columns, nsys_gpu_sync_row, NULL, 0},
	{"CUPTI_ACTIVITY_KIND_CUDA_EVENT", no_columns, nsys_gpu_ignore_row, NULL, 'M'}, /* ids only: no time in most versions */
	{0},
};
