/* Tables of work on the GPU. Kernels, copies and sets are named and filed as Kineto does it, so that all reports treat them alike. */
#include "input/nvprof/nvprof.h"

#include "input/cupti.h"

static int32_t nvprof_gpu_small(int64_t v) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : INT32_MIN; }
static int64_t nvprof_gpu_unless_zero(int64_t v) { return v ? v : ID_NONE; }

/* Of these names the first columns of every such table. */
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, GRAPH_NODE, GRAPH, OWN };
#define COMMON_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "graphNodeId", "graphId"

static struct launch_row nvprof_gpu_launch_of(struct nvprof *n, const struct sqlscan *s)
{
	struct launch_row l = launch_none();
	l.device = nvprof_gpu_small(nvprof_int(n, s, DEVICE, -1));
	l.context = nvprof_int(n, s, CONTEXT, ID_NONE);
	l.stream = nvprof_int(n, s, STREAM, ID_NONE);
	l.graph_node_id = nvprof_gpu_unless_zero(nvprof_int(n, s, GRAPH_NODE, 0));
	l.graph_id = nvprof_gpu_unless_zero(nvprof_int(n, s, GRAPH, 0));
	if (l.device == INT32_MIN)
		l.device = nvprof_context_device(n, l.context);
	return l;
}

static void nvprof_gpu_add(struct nvprof *n, const struct sqlscan *s, struct gpu_row *r, const struct launch_row *l)
{
	if (!nvprof_times(n, s, START, END, &r->start_ns, &r->dur_ns))
		return;
	r->track = nvprof_stream_track(n, l->device == INT32_MIN ? -1 : l->device, l->stream == ID_NONE ? -1 : l->stream);
	r->launch = build_launch(&n->b, l);
	r->ext_id = ID_NONE;
	r->corr_id = nvprof_int(n, s, CORRELATION, ID_NONE);
	r->cat = n->cat;
	nvprof_stream_on(n, l->stream, l->device);
	build_gpu(&n->b, r);
}

enum { NAME = OWN, REGISTERS, GRID_X, GRID_Y, GRID_Z, BLOCK_X, BLOCK_Y, BLOCK_Z, STATIC_SHARED, DYNAMIC_SHARED };
static const char *const kernel_columns[] = {COMMON_COLUMNS, "name", "registersPerThread", "gridX", "gridY", "gridZ", "blockX",
	"blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", NULL};

static void nvprof_gpu_kernel_row(struct nvprof *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_KERNEL, .name = nvprof_function(n, nvprof_int(n, s, NAME, -1))};
	struct launch_row l = nvprof_gpu_launch_of(n, s);
	int32_t *const to[] = {&l.registers, &l.grid_x, &l.grid_y, &l.grid_z, &l.block_x, &l.block_y, &l.block_z};
	for (int c = 0; c < (int)(sizeof to / sizeof to[0]); c++)
		*to[c] = nvprof_gpu_small(nvprof_int(n, s, REGISTERS + c, -1));
	int64_t fixed = nvprof_int(n, s, STATIC_SHARED, -1), dynamic = nvprof_int(n, s, DYNAMIC_SHARED, -1);
	if (fixed >= 0 && dynamic >= 0 && fixed <= INT32_MAX && dynamic <= INT32_MAX)
		l.shared_bytes = nvprof_gpu_small(fixed + dynamic);
	cupti_per_sm(&n->p->device, idmap_get(&n->device_row, l.device), &l);
	nvprof_gpu_add(n, s, &r, &l);
}

enum { COPY_BYTES = OWN, COPY_KIND, FROM_KIND, TO_KIND, FROM_DEVICE, TO_DEVICE };
static const char *const memcpy_columns[] = {COMMON_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", NULL};

static void nvprof_gpu_memcpy_row(struct nvprof *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_MEMCPY};
	struct launch_row l = nvprof_gpu_launch_of(n, s);
	int64_t from = nvprof_int(n, s, FROM_DEVICE, -1), to = nvprof_int(n, s, TO_DEVICE, -1);
	struct buf b = {0};
	buf_printf(&b, "Memcpy %s (%s -> %s)", cupti_copy_kind(nvprof_int(n, s, COPY_KIND, 0)), cupti_memory_kind(nvprof_int(n, s, FROM_KIND, 0)),
	           cupti_memory_kind(nvprof_int(n, s, TO_KIND, 0)));
	r.name = nvprof_intern_buf(n, &b);
	if (from >= 0 && to >= 0) {
		struct arg_pair pair[2] = {{.key = intern_str(&n->p->strings, str_from(arg_key_text[ARG_FROM_DEVICE]))}, {.key = intern_str(&n->p->strings, str_from(arg_key_text[ARG_TO_DEVICE]))}};
		for (int i = 0; i < 2; i++) {
			struct buf v = {0};
			buf_i64(&v, i ? to : from);
			pair[i].value = nvprof_intern_buf(n, &v);
		}
		r.args = build_args(&n->b, pair, 2);
	}
	l.bytes = nvprof_int(n, s, COPY_BYTES, ID_NONE);
	nvprof_gpu_add(n, s, &r, &l);
}

enum { SET_BYTES = OWN, SET_KIND };
static const char *const memset_columns[] = {COMMON_COLUMNS, "bytes", "memoryKind", NULL};

static void nvprof_gpu_memset_row(struct nvprof *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_MEMSET};
	struct launch_row l = nvprof_gpu_launch_of(n, s);
	struct buf b = {0};
	buf_printf(&b, "Memset (%s)", cupti_memory_kind(nvprof_int(n, s, SET_KIND, 0)));
	r.name = nvprof_intern_buf(n, &b);
	l.bytes = nvprof_int(n, s, SET_BYTES, ID_NONE);
	nvprof_gpu_add(n, s, &r, &l);
}

/* One row a launch of a whole graph. */
static const char *const graph_columns[] = {COMMON_COLUMNS, NULL};

static void nvprof_gpu_graph_row(struct nvprof *n, const struct sqlscan *s)
{
	struct gpu_row r = {.kind = GPU_KERNEL};
	struct launch_row l = nvprof_gpu_launch_of(n, s);
	struct buf b = {0};
	buf_printf(&b, "CUDA graph %lld", (long long)nvprof_int(n, s, GRAPH, 0));
	r.name = nvprof_intern_buf(n, &b);
	diag_add(&n->p->diags, "whole-graphs", DIAG_NOTE, -1, "CUDA graphs were recorded as a whole, without their kernels");
	nvprof_gpu_add(n, s, &r, &l);
}

enum { SYNC_START, SYNC_END, SYNC_TYPE, SYNC_CORRELATION, SYNC_CONTEXT, SYNC_STREAM };
static const char *const sync_columns[] = {"start", "end", "type", "correlationId", "contextId", "streamId", NULL};

static void nvprof_gpu_sync_row(struct nvprof *n, const struct sqlscan *s)
{
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .kind = SPAN_SYNC, .cat = n->cat};
	if (!nvprof_times(n, s, SYNC_START, SYNC_END, &r.start_ns, &r.dur_ns))
		return;
	int64_t stream = nvprof_int(n, s, SYNC_STREAM, -1); /* the context is the calling thread's, not always the stream's */
	int32_t device = nvprof_stream_device(n, stream, nvprof_int(n, s, SYNC_CONTEXT, -1));
	r.name = intern_str(&n->p->strings, str_from(cupti_sync_name(nvprof_int(n, s, SYNC_TYPE, 0))));
	r.link_id = nvprof_int(n, s, SYNC_CORRELATION, ID_NONE);
	r.track = nvprof_stream_track(n, device == INT32_MIN ? -1 : device, stream == UINT32_MAX ? -1 : stream);
	build_span(&n->b, &r);
}

static void nvprof_gpu_ignore_row(struct nvprof *n, const struct sqlscan *s) { (void)n, (void)s; }
static const char *const no_columns[] = {NULL};

const struct nvprof_table nvprof_gpu_tables[] = {
	{"CONCURRENT_KERNEL", kernel_columns, nvprof_gpu_kernel_row, "kernel", 'X'},
	{"KERNEL", kernel_columns, nvprof_gpu_kernel_row, "kernel", 'X'},
	{"CDP_KERNEL", kernel_columns, nvprof_gpu_kernel_row, "kernel", 'X'}, /* launched by kernels */
	{"MEMCPY", memcpy_columns, nvprof_gpu_memcpy_row, "gpu_memcpy", 'X'},
	{"MEMCPY2", memcpy_columns, nvprof_gpu_memcpy_row, "gpu_memcpy", 'X'}, /* from GPU to GPU */
	{"MEMSET", memset_columns, nvprof_gpu_memset_row, "gpu_memset", 'X'},
	{"GRAPH_TRACE", graph_columns, nvprof_gpu_graph_row, "kernel", 'X'},
	{"SYNCHRONIZATION", sync_columns, nvprof_gpu_sync_row, "cuda_sync", 'X'},
	{"CUDA_EVENT", no_columns, nvprof_gpu_ignore_row, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", 'M'}, /* ids only, no time */
	{0},
};
