/* What each op should cost: one row per distinct call (op, shapes, types, values), with the time of the device work that it covers. */
#include "analysis/costs.h"

#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "report/report.h"

#include <math.h>

struct row {
	uint64_t calls;
	int64_t gpu_ns;
};

struct calls {
	const struct profile *p;
	struct costs *c;
	struct row *v;
	uint32_t n, cap;
	int64_t device_ns; /* of all device work, whatever launched it */
	bool tracelens;
};

static struct row *row_at(struct calls *r, uint32_t index)
{
	while (r->n <= index) {
		MEM_GROW(r->v, r->cap, r->n + 1);
		r->v[r->n++] = (struct row){0};
	}
	return &r->v[index];
}

/* Calls of ops as the trace has them; of a backward that only its link to a forward op explains, ranges that launched work. */
static void collect(struct calls *r)
{
	const struct profile *p = r->p;
	uint8_t *counted = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP)
			row_at(r, costs_index_of_span(r->c, p, i, COST_FORWARD))->calls++;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint32_t at = r->c->of_gpu[i], op = r->c->op[i];
		enum cost_direction d = COST_FORWARD;
		r->device_ns += p->gpu_op.dur_ns[i];
		if (at == ROW_NONE && op != ROW_NONE && p->span.kind[op] == SPAN_OP)
			at = costs_index_of_span(r->c, p, op, COST_FORWARD);
		if (at == ROW_NONE)
			continue;
		struct row *x = row_at(r, at);
		struct op_facts f = costs_facts(r->c, p, at, &d);
		x->gpu_ns += p->gpu_op.dur_ns[i];
		bool of_kernel = f.collective.n && (op == ROW_NONE || costs_index_of_span(r->c, p, op, COST_FORWARD) != at);
		if (of_kernel)
			x->calls++;
		else if (d == COST_BACKWARD && op != ROW_NONE && !counted[op])
			x->calls += counted[op] = 1;
	}
	mem_free(counted);
}

/* What has neither a rule nor device work of its own says nothing; views do nothing. */
static bool shown(const struct calls *r, uint32_t i)
{
	const struct cost *m = &r->c->cost[i];
	if (r->v[i].calls == 0)
		return false;
	if (r->tracelens)
		return m->flops >= 0 && m->class != OP_VIEW;
	return r->v[i].gpu_ns > 0 || (m->class != OP_UNKNOWN && m->class != OP_VIEW);
}

static void set_known(struct table *out, unsigned col, int64_t v)
{
	if (v >= 0)
		table_set_i64(out, col, v);
}

enum { C_OP, C_DIRECTION, C_DIMS, C_TYPES, C_PARAMS, C_CLASS, C_DTYPE, C_TC, C_CALLS, C_GPU, C_SHARE, C_FLOPS, C_BYTES, C_AI, C_READ,
       C_WRITTEN, C_WIRE, C_CAUSAL, C_FORMULA, C_WHY, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_OP] = {"op", "Operator", "op, or the forward op of a backward that it explains", CELL_STR},
	[C_DIRECTION] = {"direction", "Direction", "backward: an op of the backward pass by its name, or the cost of the backward of this forward op", CELL_STR},
	[C_DIMS] = {"input_dims", "Input Dims", "shapes as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[C_TYPES] = {"input_types", "Input Types", "types as recorded", CELL_STR, UNIT_NONE, COLUMN_DETAIL},
	[C_PARAMS] = {"params", "Parameters", "dimensions and parameters that the formula takes", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[C_CLASS] = {"class", "Class", "what kind of op it is", CELL_STR},
	[C_DTYPE] = {"dtype", "Type", "type of the operands that decide", CELL_STR},
	[C_TC] = {"tc_eligible", "TC Eligible", "whether its main kernel could use Tensor Cores, by op, type and shape: yes, no, unknown",
	          CELL_STR},
	[C_CALLS] = {"calls", "Calls", "how often it was called so", CELL_I64, UNIT_COUNT},
	[C_GPU] = {"gpu_ns", "GPU Time", "device work that these calls are the innermost model of", CELL_I64, UNIT_NS},
	[C_SHARE] = {"gpu_pct", "GPU %", "of the time of all device work: kernels, copies and sets", CELL_F64, UNIT_PERCENT},
	[C_FLOPS] = {"flops", "FLOPs", "of one call; a multiply-add is 2", CELL_I64, UNIT_FLOPS},
	[C_BYTES] = {"bytes", "Bytes", "of one call: inputs and outputs once", CELL_I64, UNIT_BYTES},
	[C_AI] = {"flops_per_byte", "FLOPs/Byte", "arithmetic intensity", CELL_F64},
	[C_READ] = {"bytes_read", "Bytes Read", "of one call", CELL_I64, UNIT_BYTES, COLUMN_DETAIL},
	[C_WRITTEN] = {"bytes_written", "Bytes Written", "of one call", CELL_I64, UNIT_BYTES, COLUMN_DETAIL},
	[C_WIRE] = {"wire_bytes", "Wire Bytes", "collectives: what a rank sends; this / time is the bus bandwidth of nccl-tests", CELL_I64,
	            UNIT_BYTES, COLUMN_DETAIL},
	[C_CAUSAL] = {"flops_causal", "Causal FLOPs", "attention with a causal mask: only the pairs that it leaves", CELL_I64, UNIT_FLOPS,
	              COLUMN_DETAIL},
	[C_FORMULA] = {"formula", "Formula", "FLOPs by name of dimension", CELL_STR, UNIT_NONE, COLUMN_DETAIL},
	[C_WHY] = {"why", "Unknown Because", "why FLOPs or bytes are unknown", CELL_STR, UNIT_NONE, COLUMN_WIDE},
};

static void put(struct table *out, const struct calls *r, uint32_t i)
{
	static const char *const tri[] = {[TRI_NO] = "no", [TRI_YES] = "yes", [TRI_UNKNOWN] = "unknown"};
	const struct cost *m = &r->c->cost[i];
	enum cost_direction d;
	struct op_facts f = costs_facts(r->c, r->p, i, &d);
	table_row(out);
	table_set_str_copy(out, C_OP, f.name);
	table_set_str(out, C_DIRECTION, d == COST_BACKWARD || str_has_nocase(f.name, STR("backward")) ? STR("backward") : STR("forward"));
	if (f.dims.n)
		table_set_str(out, C_DIMS, f.dims);
	if (f.types.n)
		table_set_str(out, C_TYPES, f.types);
	if (m->params.n)
		table_set_str_copy(out, C_PARAMS, m->params);
	table_set_str(out, C_CLASS, str_from(op_class_name[m->class]));
	if (m->dtype != DTYPE_UNKNOWN)
		table_set_str(out, C_DTYPE, str_from(dtype_name(m->dtype)));
	table_set_str(out, C_TC, str_from(tri[m->tc_eligible]));
	table_set_i64(out, C_CALLS, (int64_t)r->v[i].calls);
	table_set_i64(out, C_GPU, r->v[i].gpu_ns);
	table_set_f64(out, C_SHARE, percent((double)r->v[i].gpu_ns, (double)r->device_ns));
	set_known(out, C_FLOPS, m->flops);
	set_known(out, C_BYTES, m->bytes);
	if (m->flops >= 0 && m->bytes > 0)
		table_set_f64(out, C_AI, (double)m->flops / (double)m->bytes);
	set_known(out, C_READ, m->bytes_read);
	set_known(out, C_WRITTEN, m->bytes_written);
	set_known(out, C_WIRE, m->wire_bytes);
	set_known(out, C_CAUSAL, m->flops_causal);
	if (m->formula.n)
		table_set_str_copy(out, C_FORMULA, m->formula);
	if (m->why.n)
		table_set_str_copy(out, C_WHY, m->why);
}

enum { T_NAME, T_DIMS, T_TYPES, T_CONCRETE, T_CALLS, T_GFLOPS, T_MB, T_AI, N_TRACELENS };

static const struct column tracelens_columns[N_TRACELENS] = {
	[T_NAME] = {"name", "name", "op", CELL_STR},
	[T_DIMS] = {"input_dims", "Input Dims", "shapes as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[T_TYPES] = {"input_type", "Input type", "types as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[T_CONCRETE] = {"concrete_inputs", "Concrete Inputs", "values as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[T_CALLS] = {"operation_count", "operation_count", "how often it was called so", CELL_I64},
	[T_GFLOPS] = {"gflops", "GFLOPS", "10^9 FLOPs of one call, by TraceLens' formulas", CELL_F64, UNIT_NONE, 0, 9},
	[T_MB] = {"data_moved_mb", "Data Moved (MB)", "2^20 bytes of one call", CELL_F64, UNIT_NONE, 0, 9},
	[T_AI] = {"flops_per_byte", "FLOPS/Byte", "arithmetic intensity", CELL_F64},
};

static void put_tracelens(struct table *out, const struct calls *r, uint32_t i)
{
	const struct cost *m = &r->c->cost[i];
	enum cost_direction d;
	struct op_facts f = costs_facts(r->c, r->p, i, &d);
	table_row(out);
	table_set_str_copy(out, T_NAME, f.name);
	table_set_str(out, T_DIMS, f.dims);
	table_set_str(out, T_TYPES, f.types);
	table_set_str(out, T_CONCRETE, f.concrete);
	table_set_i64(out, T_CALLS, (int64_t)r->v[i].calls);
	table_set_f64(out, T_GFLOPS, (double)m->flops / 1e9);
	if (m->bytes >= 0)
		table_set_f64(out, T_MB, (double)m->bytes / (1 << 20));
	if (m->bytes > 0)
		table_set_f64(out, T_AI, (double)m->flops / (double)m->bytes);
}

static void notes(struct table *out, const struct costs *c)
{
	if (!c->kernel_ns) {
		table_warn(out, "the trace holds no kernels: the costs are of the ops alone");
		return;
	}
	table_note(out, "kernels %lld ns = with a model %lld + without one %lld + launched by no op %lld", (long long)c->kernel_ns,
	           (long long)c->modelled_ns, (long long)c->unmodelled_ns, (long long)c->unattributed_ns);
	table_note(out, "%.2f %% of the kernels' time has a model", percent_or_zero((double)c->modelled_ns, (double)c->kernel_ns));
	table_note(out, "an op whose kernels an op inside it explains (aten::linear around aten::addmm) is listed without their time");
}

static int costs_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct calls r = {.p = p, .tracelens = report_compat_is(args, "tracelens")};
	bool any = false;
	int rc = 0;
	for (uint32_t i = 0; i < p->span.rows.n && !any; i++)
		any = p->span.kind[i] == SPAN_OP;
	if (!any)
		return err_set(e, ERR_DATA, "the input holds no framework ops; to record them: %s, and %s", recording_how(p, RECORD_OPS),
		               recording_how(p, RECORD_SHAPES));
	r.c = costs_new(p, r.tracelens ? COST_TRACELENS : COST_DEFAULT);
	collect(&r);
	table_columns(out, r.tracelens ? tracelens_columns : columns, r.tracelens ? N_TRACELENS : N_COLUMNS);
	for (uint32_t i = 0; i < r.n; i++) {
		if (!shown(&r, i))
			continue;
		if (r.tracelens)
			put_tracelens(out, &r, i);
		else
			put(out, &r, i);
	}
	if (!r.tracelens) {
		notes(out, r.c);
		rc = table_sort(out, STR("gpu_ns"), true, e);
	}
	mem_free(r.v);
	costs_free(r.c);
	return rc;
}

static const struct report_variant costs_variants[] = {
	{.compat = "tracelens"},
	{0},
};

const struct report report_costs = {
	.name = "costs",
	.title = "What ops should cost: FLOPs and bytes",
	.asks = ASKS_FASTER,
	.also = "flops bytes cost",
	.help = "FLOPs and bytes of every distinct call of an op, by its shapes, types and parameters, with the formula, and the time of the "
	        "kernels that it explains; where something is unknown, why. FLOPs count a multiply-add as 2, bytes are what an ideal kernel "
	        "reads and writes once. --compat=tracelens prints TraceLens' figures.",
	.variants = costs_variants,
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = costs_run,
};
