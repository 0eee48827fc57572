/* Per kernel: op, layer, line, shapes, direction, FLOPs, bytes, Tensor Cores; as PyProf and PyProf2 printed it, or right. */
#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/names/short_names.h"
#include "analysis/names/stacks.h"
#include "analysis/recording.h"
#include "analysis/time/bounds.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "op/kernels.h"
#include "op/short_name.h"
#include "predecessors/pyprof/row.h"
#include "query/report.h"

enum {
	PYPROF_REPORT_IDX, PYPROF_REPORT_SEQ, PYPROF_REPORT_ALTSEQ, PYPROF_REPORT_TID, PYPROF_REPORT_LAYER, PYPROF_REPORT_TRACE, PYPROF_REPORT_DIR,
	PYPROF_REPORT_SUB, PYPROF_REPORT_MOD, PYPROF_REPORT_OP, PYPROF_REPORT_KERNEL, PYPROF_REPORT_PARAMS, PYPROF_REPORT_SIL, PYPROF_REPORT_TC,
	PYPROF_REPORT_DEVICE, PYPROF_REPORT_STREAM, PYPROF_REPORT_GRID, PYPROF_REPORT_BLOCK, PYPROF_REPORT_FLOPS, PYPROF_REPORT_BYTES, PYPROF_REPORT_COMPAT,
	PYPROF_REPORT_START = PYPROF_REPORT_COMPAT, PYPROF_REPORT_OPS, PYPROF_REPORT_CLASS, PYPROF_REPORT_TFLOPS, PYPROF_REPORT_GBPS, PYPROF_REPORT_LINE,
	PYPROF_REPORT_NAME, PYPROF_REPORT_WHY
};

/* PyProf's columns and headers (its output.py). */
static const struct column compat_columns[PYPROF_REPORT_COMPAT] = {
	[PYPROF_REPORT_IDX] = {.id = "idx", .title = "Idx", .help = "number of the row", .type = CELL_I64},
	[PYPROF_REPORT_SEQ] = {.id = "seq", .title = "SeqId", .help = "sequence number", .type = CELL_STR},
	[PYPROF_REPORT_ALTSEQ] = {.id = "altseq", .title = "AltSeqId", .help = "further sequence numbers", .type = CELL_STR},
	[PYPROF_REPORT_TID] = {.id = "tid", .title = "TId", .help = "thread that launched it", .type = CELL_I64},
	[PYPROF_REPORT_LAYER] = {.id = "layer", .title = "Layer", .help = "user's layer: ranges, outermost first", .type = CELL_STR},
	[PYPROF_REPORT_TRACE] = {.id = "trace", .title = "Trace", .help = "call stack, outermost first", .type = CELL_STR, .flags = COLUMN_WIDE},
	[PYPROF_REPORT_DIR] = {.id = "dir", .title = "Direction", .help = "fprop or bprop", .type = CELL_STR},
	[PYPROF_REPORT_SUB] = {.id = "sub", .title = "Sub", .help = "which kernel of the op", .type = CELL_I64},
	[PYPROF_REPORT_MOD] = {.id = "mod", .title = "Module", .help = "module of the op", .type = CELL_STR},
	[PYPROF_REPORT_OP] = {.id = "op", .title = "Op", .help = "op", .type = CELL_STR},
	[PYPROF_REPORT_KERNEL] = {.id = "kernel", .title = "Kernel", .help = "short name of the kernel", .type = CELL_STR},
	[PYPROF_REPORT_PARAMS] = {.id = "params", .title = "Params", .help = "parameters", .type = CELL_STR, .flags = COLUMN_WIDE},
	[PYPROF_REPORT_SIL] = {.id = "sil_ns", .title = "Sil(ns)", .help = "duration", .type = CELL_I64},
	[PYPROF_REPORT_TC] = {.id = "tc", .title = "TC", .help = "Tensor Cores: 1 used, 0 not, - not applicable, na unknown", .type = CELL_STR},
	[PYPROF_REPORT_DEVICE] = {.id = "device", .title = "Device", .help = "device", .type = CELL_I64},
	[PYPROF_REPORT_STREAM] = {.id = "stream", .title = "Stream", .help = "stream", .type = CELL_I64},
	[PYPROF_REPORT_GRID] = {.id = "grid", .title = "Grid", .help = "grid", .type = CELL_STR},
	[PYPROF_REPORT_BLOCK] = {.id = "block", .title = "Block", .help = "block", .type = CELL_STR},
	[PYPROF_REPORT_FLOPS] = {.id = "flops", .title = "FLOPs", .help = "as Python prints it", .type = CELL_STR},
	[PYPROF_REPORT_BYTES] = {.id = "bytes", .title = "Bytes", .help = "as Python prints it", .type = CELL_STR},
};

static const struct section pyprof_report_section = {COLUMNS(
	[PYPROF_REPORT_IDX] = {COLUMN(NUMBER, "idx", "Idx", "number of the kernel in the order of launches, from 1")},
	[PYPROF_REPORT_SEQ] = {COLUMN(TEXT, "seq", "SeqId", "autograd's sequence number of the op", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_ALTSEQ] = {COLUMN(TEXT, "altseq", "AltSeqId", "sequence numbers of the ops inside it around the launch", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_TID] = {COLUMN(NUMBER, "tid", "TId", "thread that launched it", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_LAYER] = {COLUMN(TEXT, "layer", "Layer", "ranges `layer:NAME` around it, outermost first; of a backward kernel its forward op's",
	                                .flags = COLUMN_ANSWER | COLUMN_PATH)},
	[PYPROF_REPORT_TRACE] = {COLUMN(TEXT, "trace", "Trace", "call stack of the op, outermost first; of a backward kernel its forward op's",
	                                .flags = COLUMN_DETAIL | COLUMN_WIDE)},
	[PYPROF_REPORT_DIR] = {COLUMN(TEXT, "dir", "Direction", "bprop: launched in autograd's backward pass; fprop: by any other op; empty: nothing says what launched "
	                              "it")},
	[PYPROF_REPORT_SUB] = {COLUMN(NUMBER, "sub", "Sub", "which of the kernels of this call of the op, from 0", .flags = COLUMN_MINOR)},
	[PYPROF_REPORT_MOD] = {COLUMN(TEXT, "mod", "Module", "module or class of the op", .flags = COLUMN_MINOR)},
	[PYPROF_REPORT_OP] = {COLUMN(TEXT, "op", "Op", "op that FLOPs and bytes are of, else the outermost; of a backward kernel the forward op", .flags = COLUMN_ANSWER)},
	[PYPROF_REPORT_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "name without parameters, template arguments and PyTorch's name spaces", .flags = COLUMN_ANSWER)},
	[PYPROF_REPORT_PARAMS] = {COLUMN(TEXT, "params", "Params", "dimensions and parameters of the op", .flags = COLUMN_WIDE)},
	[PYPROF_REPORT_SIL] = {COLUMN(NS, "sil_ns", "Sil", "duration", .flags = COLUMN_ANSWER)},
	[PYPROF_REPORT_TC] = {COLUMN(TEXT, "tc", "TC", "Tensor Cores: used, not used, unknown where neither name nor op tells", .flags = COLUMN_ANSWER)},
	[PYPROF_REPORT_DEVICE] = {COLUMN(NUMBER, "device", "Device", "device", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "stream", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_GRID] = {COLUMN(TEXT, "grid", "Grid", "grid", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_BLOCK] = {COLUMN(TEXT, "block", "Block", "block", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "that the op needs, counted at its main kernel; 0 at its others; empty = unknown")},
	[PYPROF_REPORT_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "that the op must read and write, counted likewise", .flags = COLUMN_ANSWER)},
	[PYPROF_REPORT_START] = {COLUMN(TIME, "start_ns", "Start", "when it began; empty when the input has no times", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_OPS] = {COLUMN(TEXT, "ops", "Ops", "all ops around the launch, outermost first", .flags = COLUMN_DETAIL | COLUMN_WIDE)},
	[PYPROF_REPORT_CLASS] = {COLUMN(TEXT, "class", "Class", "kind of kernel, by its name", .flags = COLUMN_DETAIL)},
	[PYPROF_REPORT_TFLOPS] = {COLUMN(REAL, "tflops", "TFLOP/s", "flops / (duration + time of the op's kernels at which nothing is counted)", .flags = COLUMN_ANSWER,
	                                 .digits = 3)},
	[PYPROF_REPORT_GBPS] = {COLUMN(REAL, "gb_per_s", "GB/s", "bytes / the same time", .digits = 1)},
	[PYPROF_REPORT_LINE] = {COLUMN(TEXT, "line", "Line", "innermost line of the user's program", .flags = COLUMN_ANSWER | COLUMN_PATH)},
	[PYPROF_REPORT_NAME] = {COLUMN(TEXT, "kernel_name", "Kernel Name", "full name", .flags = COLUMN_DETAIL | COLUMN_WIDE)},
	[PYPROF_REPORT_WHY] = {COLUMN(TEXT, "why", "Unknown Because", "why FLOPs or bytes are unknown", .flags = COLUMN_DETAIL)},
)};

/* The kernels of one call of an op. */
struct pyprof_report_call {
	int64_t other_ns;               /* of those at which nothing is counted */
	uint32_t carriers;              /* how many others */
};

struct printer {
	const struct profile *p;
	struct pyprof_rows *rows;
	struct table *out;
	struct costs *costs;
	struct idmap call_of;           /* op (row in span) -> place in `call` */
	struct pyprof_report_call *call;
	struct stacks *stacks;          /* NULL: no call stacks were recorded with the ops */
	struct short_names *names;      /* NULL: PyProf's own table */
	struct buf text;
	uint64_t ended;                 /* rows at which PyProf would have ended */
	uint32_t first_ended;
	struct str first_why;
};

static void pyprof_report_set_text(struct printer *x, unsigned col)
{
	table_set_str_copy(x->out, col, buf_view(&x->text));
	buf_clear(&x->text);
}

static void set_three(struct printer *x, unsigned col, const int64_t v[3])
{
	if (v[0] < 0)
		return;
	pyprof_put_three(&x->text, v);
	pyprof_report_set_text(x, col);
}

static void set_stated(struct table *out, unsigned col, int64_t v)
{
	if (v >= 0)
		table_set_i64(out, col, v);
}

/* Columns that both forms have, in the same way. */
static void put_common(struct printer *x, uint32_t i, const struct pyprof_row *row)
{
	table_row(x->out);
	table_set_i64(x->out, PYPROF_REPORT_IDX, (int64_t)i + 1);
	set_stated(x->out, PYPROF_REPORT_TID, row->r.tid);
	table_set_i64(x->out, PYPROF_REPORT_SUB, row->r.sub);
	table_set_i64(x->out, PYPROF_REPORT_SIL, row->r.duration_ns);
	set_stated(x->out, PYPROF_REPORT_DEVICE, row->r.device);
	set_stated(x->out, PYPROF_REPORT_STREAM, row->r.stream);
	set_three(x, PYPROF_REPORT_GRID, row->r.grid);
	set_three(x, PYPROF_REPORT_BLOCK, row->r.block);
}

static void put_compat(struct printer *x, uint32_t i)
{
	const struct pyprof_row *row = pyprof_rows_get(x->rows, i);
	char tc[] = {row->model.tc, '\0'};
	put_common(x, i, row);
	table_set_str(x->out, PYPROF_REPORT_DIR, row->r.backward ? STR("bprop") : STR("fprop"));
	pyprof_put_ids(&x->text, row->r.seq);
	pyprof_report_set_text(x, PYPROF_REPORT_SEQ);
	pyprof_put_ids(&x->text, row->r.alt_seq);
	pyprof_report_set_text(x, PYPROF_REPORT_ALTSEQ);
	pyprof_put_joined(&x->text, row->r.layer, ":");
	pyprof_report_set_text(x, PYPROF_REPORT_LAYER);
	pyprof_put_joined(&x->text, row->r.trace, ",");
	pyprof_report_set_text(x, PYPROF_REPORT_TRACE);
	table_set_str_copy(x->out, PYPROF_REPORT_MOD, row->mod);
	table_set_str_copy(x->out, PYPROF_REPORT_OP, row->op);
	table_set_str_copy(x->out, PYPROF_REPORT_KERNEL, row->kernel);
	table_set_str_copy(x->out, PYPROF_REPORT_PARAMS, row->modelled ? buf_view(&row->model.params) : STR("na=na,"));
	table_set_str_copy(x->out, PYPROF_REPORT_TC, row->modelled ? str_from(tc) : STR("na"));
	pyprof_num_put(&x->text, row->model.flops);
	pyprof_report_set_text(x, PYPROF_REPORT_FLOPS);
	pyprof_num_put(&x->text, row->model.bytes);
	pyprof_report_set_text(x, PYPROF_REPORT_BYTES);
	if (row->why && !x->ended++) {
		x->first_ended = i + 1;
		x->first_why = str_from(row->why);
	}
}

/* What of the kernels of the op's call at which nothing is counted (transforms, reductions of parts) falls to this one, at which
 * something is. */
static double helpers_ns(const struct printer *x, uint32_t gpu)
{
	uint32_t op = x->costs->op[gpu], at = op == ROW_NONE ? IDMAP_NONE : idmap_get(&x->call_of, op);
	return at == IDMAP_NONE || !x->call[at].carriers ? 0 : (double)x->call[at].other_ns / x->call[at].carriers;
}

/* The calls whose kernels are among the first `shown` rows. */
static void pyprof_report_find_calls(struct printer *x, uint32_t shown)
{
	const struct gpu_ops *g = &x->p->gpu_op;
	const struct costs *c = x->costs;
	const uint32_t *row = pyprof_rows_records(x->rows)->gpu;
	uint32_t n = 0;
	idmap_init(&x->call_of, 0, x->p->span.rows.n, shown);
	x->call = NEW_ARRAY(shown, struct pyprof_report_call);
	for (uint32_t i = 0; i < shown; i++)
		if (c->op[row[i]] != ROW_NONE && idmap_get(&x->call_of, c->op[row[i]]) == IDMAP_NONE)
			idmap_put(&x->call_of, c->op[row[i]], n++);
	for (uint32_t i = 0; n && i < g->rows.n; i++) {
		if (g->kind[i] != GPU_KERNEL || c->of_gpu[i] == ROW_NONE || c->op[i] == ROW_NONE)
			continue;
		uint32_t at = idmap_get(&x->call_of, c->op[i]);
		if (at == IDMAP_NONE)
			continue;
		x->call[at].carriers += c->parts[i] > 0;
		x->call[at].other_ns += c->parts[i] > 0 ? 0 : g->dur_ns[i];
	}
}

/* Ops around a launch that are asked why, at most: an op further out says nothing of the kernel. */
enum { PYPROF_WHY_MOST = 64 };

/* Why no model covers a kernel: what the model of the innermost op around it that has one says. */
static struct str why_not(struct printer *x, uint32_t gpu)
{
	const struct profile *p = x->p;
	uint32_t op = x->costs->op[gpu];
	if (op == ROW_NONE)
		return x->p->gpu_op.call[gpu] == ROW_NONE ? STR("its launch was not recorded") : STR("launched by no op that was recorded");
	for (uint32_t up = op, n = 0; up != ROW_NONE && n < PYPROF_WHY_MOST; up = p->span.op[up], n++) {
		const struct cost *m = costs_of_span(x->costs, p, up, COST_FORWARD);
		if (m && m->class != OP_UNKNOWN && m->why.n)
			return m->why;
	}
	return STR("no model of this op");
}

static void put_cost(struct printer *x, uint32_t gpu, const struct pyprof_row *row)
{
	int64_t flops = costs_flops(x->costs, gpu), bytes = costs_bytes(x->costs, gpu);
	uint32_t index = x->costs->of_gpu[gpu];
	const struct cost *m = index == ROW_NONE ? NULL : &x->costs->cost[index];
	const struct kernel_info *k = gpu_kernel(x->p, gpu);
	static const char *const tri[] = {[TRI_NO] = "not used", [TRI_YES] = "used", [TRI_UNKNOWN] = "unknown"};
	table_set_str(x->out, PYPROF_REPORT_TC, str_from(tri[m ? bounds_tensor_core(x->p, m, gpu) : gpu_tensor_core(x->p, gpu)]));
	table_set_str(x->out, PYPROF_REPORT_CLASS, str_from(kernel_class_name[k->class]));
	double ns = (double)row->r.duration_ns + helpers_ns(x, gpu);
	set_stated(x->out, PYPROF_REPORT_FLOPS, flops);
	set_stated(x->out, PYPROF_REPORT_BYTES, bytes);
	if (flops > 0 && ns > 0)
		table_set_f64(x->out, PYPROF_REPORT_TFLOPS, (double)flops / ns / 1e3);
	if (bytes > 0 && ns > 0)
		table_set_f64(x->out, PYPROF_REPORT_GBPS, (double)bytes / ns);
	if (m && m->params.n)
		table_set_str_copy(x->out, PYPROF_REPORT_PARAMS, m->params);
	if (m && m->why.n)
		table_set_str_copy(x->out, PYPROF_REPORT_WHY, m->why);
	else if (!m)
		table_set_str_copy(x->out, PYPROF_REPORT_WHY, why_not(x, gpu));
}

static void put_kernel_name(struct printer *x, const struct pyprof_row *row)
{
	struct str full = row->r.long_name.n ? row->r.long_name : row->r.short_name, found = short_names_find(x->names, full);
	if (found.p == full.p)
		kernel_short_name(&x->text, full);
	else
		buf_str(&x->text, found);
	pyprof_report_set_text(x, PYPROF_REPORT_KERNEL);
}

/* The op that FLOPs and bytes are of; where nothing has a model, the outermost one. "torch.nn.functional.linear" is a module and an
 * op, "aten::mm" is an op. */
static void pyprof_report_put_op(struct printer *x, uint32_t gpu, const struct pyprof_row *row)
{
	struct str op = row->r.op.n ? row->r.op.v[0] : STR(""), mod = str_eqc(row->mod, "na") ? STR("") : row->mod;
	uint32_t index = x->costs->of_gpu[gpu];
	if (index != ROW_NONE) {
		enum cost_direction d;
		op = costs_facts(x->costs, x->p, index, &d).name;
		mod = STR("");
		const char *dot = memrchr(op.p, '.', op.n);
		if (dot && !str_has(op, STR("::"))) {
			mod = (struct str){op.p, (size_t)(dot - op.p)};
			op = (struct str){dot + 1, (size_t)(op.p + op.n - dot - 1)};
		}
	}
	if (mod.n)
		table_set_str_copy(x->out, PYPROF_REPORT_MOD, mod);
	if (op.n)
		table_set_str_copy(x->out, PYPROF_REPORT_OP, op);
	if (row->r.op.n) {
		pyprof_put_joined(&x->text, row->r.op, " > ");
		pyprof_report_set_text(x, PYPROF_REPORT_OPS);
	}
}

/* From a trace marker, else from the stack that the profiler recorded with the op. */
static void pyprof_report_put_trace(struct printer *x, uint32_t gpu, const struct pyprof_row *row)
{
	if (row->r.trace.n) {
		pyprof_put_joined(&x->text, row->r.trace, ",");
		pyprof_report_set_text(x, PYPROF_REPORT_TRACE);
		table_set_str_copy(x->out, PYPROF_REPORT_LINE, row->r.trace.v[row->r.trace.n - 1]);
		return;
	}
	uint32_t op = x->p->gpu_op.op[gpu];
	if (!x->stacks || op == ROW_NONE)
		return;
	struct str line = stacks_user_line(x->stacks, stacks_of(x->stacks, op));
	if (line.n)
		table_set_str_copy(x->out, PYPROF_REPORT_LINE, line);
}

static void put_default(struct printer *x, uint32_t i)
{
	const struct pyprof_row *row = pyprof_rows_get(x->rows, i);
	uint32_t gpu = pyprof_rows_records(x->rows)->gpu[i];
	put_common(x, i, row);
	if (pyprof_record_attributed(pyprof_rows_records(x->rows), i))
		table_set_str(x->out, PYPROF_REPORT_DIR, row->r.backward ? STR("bprop") : STR("fprop"));
	if (row->r.seq.n)
		pyprof_put_ids(&x->text, row->r.seq), pyprof_report_set_text(x, PYPROF_REPORT_SEQ);
	if (row->r.alt_seq.n)
		pyprof_put_ids(&x->text, row->r.alt_seq), pyprof_report_set_text(x, PYPROF_REPORT_ALTSEQ);
	if (row->r.layer.n)
		pyprof_put_joined(&x->text, row->r.layer, ":"), pyprof_report_set_text(x, PYPROF_REPORT_LAYER);
	pyprof_report_put_trace(x, gpu, row);
	if (!x->p->durations_only)
		table_set_i64(x->out, PYPROF_REPORT_START, x->p->gpu_op.start_ns[gpu]);
	table_set_str(x->out, PYPROF_REPORT_NAME, row->r.long_name);
	put_kernel_name(x, row);
	put_cost(x, gpu, row);
	pyprof_report_put_op(x, gpu, row);
}

static void note_compat(const struct printer *x, uint32_t shown)
{
	const struct pyprof_records *r = pyprof_rows_records(x->rows);
	if (x->ended)
		table_note(x->out, "PyProf would have ended at %llu of the %u rows here, first at row %u, where it asserts: " STR_FMT
		           "; they are printed as it prints ops that it does not know", (unsigned long long)x->ended, shown, x->first_ended,
		           STR_ARG(x->first_why));
	if (r->left_out && !r->from_dict)
		table_note(x->out, "%u kernels are left out, as PyProf does: their launch was not recorded", r->left_out);
}

/* Every nanosecond of the kernels is in one of the parts. */
static void note_default(const struct printer *x)
{
	const struct pyprof_records *r = pyprof_rows_records(x->rows);
	int64_t total = 0, by_op = 0, by_range = 0, backward = 0, linked = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		int64_t ns = x->p->gpu_op.dur_ns[r->gpu[i]];
		total += ns;
		bool op = r->from_dict ? pyprof_record_attributed(r, i) : x->costs->op[r->gpu[i]] != ROW_NONE;
		by_op += op ? ns : 0;
		by_range += !op && pyprof_record_attributed(r, i) ? ns : 0;
		backward += r->backward[i] ? ns : 0;
		linked += r->forward[i] != ROW_NONE ? ns : 0;
	}
	table_note(x->out, "kernels %lld ns = launched by an op %lld ns + inside a user's range only %lld ns + unattributed %lld ns", (long long)total,
	           (long long)by_op, (long long)by_range, (long long)(total - by_op - by_range));
	if (total && !by_op && !by_range && !x->p->whole)
		table_warn(x->out, "the input does not say what launched kernels; to record ops: %s", recording_how(x->p, RECORD_OPS));
	table_note(x->out, "backward kernels %lld ns, of which %lld ns were given op, layer and line of a forward kernel by sequence number",
	           (long long)backward, (long long)linked);
	table_note(x->out, "a model covers %.1f %% of the kernels' time: %lld ns of %lld ns; ops without a model %lld ns, no op %lld ns",
		           percent_or_zero((double)x->costs->modelled_ns, (double)x->costs->kernel_ns), (long long)x->costs->modelled_ns,
		           (long long)x->costs->kernel_ns, (long long)x->costs->unmodelled_ns, (long long)x->costs->unattributed_ns);
	table_note(x->out, "FLOPs and bytes of an op stand at its main kernel (its backward's: in parts at two), and are 0 at its others");
	if (r->from_dict)
		table_warn(x->out, "a .dict says what PyProf found, by its rules, and does not tell calls apart that say the same in a row: they count as one. The database "
		           "that it was made from says more");
	if (r->overlapping)
		table_warn(x->out, "%llu ranges overlap more than %d others of their thread and were not looked at", (unsigned long long)r->overlapping,
		           PYPROF_OVERLAP_MAX);
	if (r->left_out && !r->from_dict)
		table_warn(x->out, "the launch of %u kernels was not recorded: they stand where they ran", r->left_out);
}

static bool has_stacks(const struct profile *p)
{
	return ANY_WHERE(c, 0, p->cat.rows.n, p->cat.events[c] && str_eqc(profile_cat(p, (uint16_t)c), "python_function")) ||
	       profile_has_arg(p, ARG_CALL_STACK);
}

static int pyprof_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const enum pyprof_record_rules *asked = args->variant->rules, rules = asked ? *asked : PYPROF_RECORDS_DEFAULT;
	bool compat = asked != NULL;
	struct printer x = {.p = p, .out = out};
	x.names = compat ? NULL : short_names_new(p);
	if (!compat)
		x.costs = costs_new(p, &cost_own); /* before the records: making it takes more memory than holding it */
	x.rows = pyprof_rows_new(p, rules);
	uint32_t n = pyprof_rows_records(x.rows)->n, shown = n;
	int rc = n ? 0 : err_set(e, ERR_DATA, "no kernels%s in the input; to record them: %s, and their ops: %s",
	                         compat && pyprof_rows_records(x.rows)->left_out ? " whose launch was recorded" : "",
	                         recording_how(p, RECORD_DEVICE_WORK), recording_how(p, RECORD_OPS));
	if (rc == 0) {
		if (compat)
			table_columns(out, compat_columns, PYPROF_REPORT_COMPAT);
		else
			section_start(&pyprof_report_section, args, 0, out);
		if (!compat && has_stacks(p))
			x.stacks = stacks_new(p);
		if (args->row_limit && args->row_limit < n)
			shown = (uint32_t)args->row_limit;
		if (!compat)
			pyprof_report_find_calls(&x, shown);
		for (uint32_t i = 0; i < shown; i++)
			compat ? put_compat(&x, i) : put_default(&x, i);
		out->hidden_rows = n - shown;
		compat ? note_compat(&x, shown) : note_default(&x);
	}
	costs_free(x.costs);
	short_names_free(x.names);
	stacks_free(x.stacks);
	mem_free(x.call);
	idmap_release(&x.call_of);
	buf_release(&x.text);
	pyprof_rows_free(x.rows);
	return rc;
}

const struct report report_pyprof = {
	.name = "pyprof",
	.title = "Kernels with op, layer, line, FLOPs and bytes",
	.asks = ASKS_FASTER,
	.help = "For each kernel in the order of launches: which op launched it, with which shapes and parameters, in which layer and from which "
	        "line, forward or backward (then with op, layer and line of the forward op), how many FLOPs and bytes that takes, and whether "
	        "it used Tensor Cores. From NVTX ranges (PyProf's or DLProf's markers, emit_nvtx) or the ops of a PyTorch trace. "
	        "--compat=pyprof and --compat=pyprof2 give the columns and numbers of those tools, in the order of the kernels' starts.",
	.sections = (const struct section *const[]){&pyprof_report_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_LIMIT,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_OP_IDS | LEFT_QUIET,
	.run = pyprof_run,
};
