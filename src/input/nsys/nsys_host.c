/* Tables of what ran on the CPU: API calls, the operating system's libraries, the profiler's own work, CUDA graphs being
 * made. NVTX is in nsys_nvtx.c. */
#include "input/nsys/nsys.h"

static struct span_row call_of(struct nsys *n, const struct sqlscan *s, int thread, int name, uint16_t cat, enum span_kind kind)
{
	nsys_count(n, cat);
	uint32_t args, id = nsys_api_name(n, nsys_int(n, s, name, -1), &args);
	return (struct span_row){
		.ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1, .cat = cat, .kind = (uint8_t)kind,
		.name = id, .args = args, .track = nsys_thread_track(n, s, thread),
	};
}

enum { CALL_START, CALL_END, CALL_THREAD, CALL_NAME, CALL_CORRELATION, CALL_CLASS };
static const char *const call_columns[] = {"start", "end", "globalTid", "nameId", "correlationId", "eventClass", NULL};

/* ENUM_NSYS_EVENT_CLASS, which older files lack. A backtrace repeats the call that it belongs to. */
enum { CLASS_RUNTIME = 0, CLASS_DRIVER = 1, CLASS_BACKTRACE = 67 };

static void nsys_host_call_row(struct nsys *n, const struct sqlscan *s)
{
	bool open;
	int64_t class = nsys_int(n, s, CALL_CLASS, CLASS_RUNTIME);
	const char *cat = class == CLASS_DRIVER ? "cuda_driver" : class == CLASS_BACKTRACE ? "cuda_backtrace" : "cuda_runtime";
	struct span_row r = call_of(n, s, CALL_THREAD, CALL_NAME, nsys_cat(n, cat), class == CLASS_BACKTRACE ? SPAN_OTHER : SPAN_CALL);
	if (!nsys_times(n, s, CALL_START, CALL_END, &r.start_ns, &r.dur_ns, &open))
		return;
	if (r.kind == SPAN_CALL)
		r.link_id = nsys_int(n, s, CALL_CORRELATION, ID_NONE);
	nsys_span(n, &r, open);
}

enum { OS_START, OS_END, OS_THREAD, OS_NAME };
static const char *const os_columns[] = {"start", "end", "globalTid", "nameId", NULL};

static void plain_row(struct nsys *n, const struct sqlscan *s, const char *cat, enum span_kind kind)
{
	bool open;
	struct span_row r = call_of(n, s, OS_THREAD, OS_NAME, nsys_cat(n, cat), kind);
	if (nsys_times(n, s, OS_START, OS_END, &r.start_ns, &r.dur_ns, &open))
		nsys_span(n, &r, open);
}

static void os_row(struct nsys *n, const struct sqlscan *s) { plain_row(n, s, "osrt", SPAN_OS); }
static void nsys_host_overhead_row(struct nsys *n, const struct sqlscan *s) { plain_row(n, s, "overhead", SPAN_OVERHEAD); }
static void graph_event_row(struct nsys *n, const struct sqlscan *s) { plain_row(n, s, "cuda_graph", SPAN_OTHER); }

enum { NODE_START, NODE_END, NODE_THREAD, NODE_NAME, NODE_ID, NODE_ORIGINAL };
static const char *const node_columns[] = {"start", "end", "globalTid", "nameId", "graphNodeId", "originalGraphNodeId", NULL};

/* A node of a graph was made, or copied from another one: ext_id and link_id (analysis/graph/graph_nodes.h). */
static void graph_node_row(struct nsys *n, const struct sqlscan *s)
{
	bool open;
	struct span_row r = call_of(n, s, NODE_THREAD, NODE_NAME, nsys_cat(n, "cuda_graph"), SPAN_OTHER);
	const int64_t id = nsys_int(n, s, NODE_ID, 0), original = nsys_int(n, s, NODE_ORIGINAL, 0);
	r.ext_id = id ? id : ID_NONE;
	r.link_id = original ? original : ID_NONE;
	if (nsys_times(n, s, NODE_START, NODE_END, &r.start_ns, &r.dur_ns, &open))
		nsys_span(n, &r, open);
}

static void cudnn_row(struct nsys *n, const struct sqlscan *s) { plain_row(n, s, "cudnn", SPAN_OTHER); }
static void cublas_row(struct nsys *n, const struct sqlscan *s) { plain_row(n, s, "cublas", SPAN_OTHER); }

/* No more rows than could lie in the file are reserved for, whatever the row ids say. */
static void reserve_spans(struct nsys *n, int64_t rows)
{
	enum { ROW_BYTES_MIN = 12 };
	uint64_t most = n->db.file_bytes / ROW_BYTES_MIN;
	uint64_t sum = (uint64_t)rows + (n->p->span.rows.cap > n->p->span.rows.n ? n->p->span.rows.cap : n->p->span.rows.n);
	if (sum >= NSYS_RESERVE_MIN && sum <= most && sum < ROW_NONE - 1)
		rows_reserve(&n->p->span, &store_tables[TABLE_span], (uint32_t)sum);
}

/* Read together in the order of time; what encloses stands before what it encloses. */
const struct nsys_table nsys_host_tables[] = {
	{"NVTX_EVENTS", nsys_nvtx_columns, nsys_nvtx_row, reserve_spans, 0},
	{"CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, nsys_host_call_row, reserve_spans, 0},
	{"CUPTI_ACTIVITY_KIND_DRIVER", call_columns, nsys_host_call_row, reserve_spans, 0},
	{"OSRT_API", os_columns, os_row, reserve_spans, 0},
	{"PROFILER_OVERHEAD", os_columns, nsys_host_overhead_row, reserve_spans, 0},
	{"CUPTI_ACTIVITY_KIND_OVERHEAD", os_columns, nsys_host_overhead_row, reserve_spans, 0},
	{"CUDA_GRAPH_EVENTS", os_columns, graph_event_row, reserve_spans, 0},
	{"CUDA_GRAPH_NODE_EVENTS", node_columns, graph_node_row, reserve_spans, 0},
	{"CUDNN_EVENTS", os_columns, cudnn_row, reserve_spans, 0},
	{"CUBLAS_EVENTS", os_columns, cublas_row, reserve_spans, 0},
	{0},
};
