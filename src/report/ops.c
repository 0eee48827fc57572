/* Time by op. */
#include "analysis/recording.h"
#include "base/buf.h"
#include "base/mem.h"
#include "query/op_sums.h"

enum ops_grouping { BY_OP, BY_NAME, BY_SHAPE };

struct ops_rows_of {
	const struct profile *p;
	const struct ops *o;
	const struct window *w;
	enum ops_grouping by;
	struct op_tc *tc;
	struct op_sum *sum;       /* by row */
	uint32_t *row;            /* op -> row */
	uint32_t *op;             /* row -> its first op */
	uint32_t *ops;            /* row -> how many ops */
	uint32_t n;
	int64_t all_ns;
};

static void ops_sum_ops(struct ops_rows_of *r)
{
	for (uint32_t k = 0; k < r->o->n_instances; k++)
		if (op_in_window(r->p, k, r->w))
			op_sum_add(&r->sum[r->row[r->o->instance[k].op]], r->p, k, r->tc);
}

enum {
	OPS_ID, OPS_NAME, OPS_TYPE, OPS_DIRECTION, OPS_SHAPES, OPS_DTYPE, OPS_OPS, OPS_CALLS, OPS_GPU, OPS_SHARE, OPS_GPU_MEAN, OPS_GPU_MIN, OPS_GPU_MAX, OPS_CPU, OPS_CPU_MEAN,
	OPS_CPU_MIN, OPS_CPU_MAX, OPS_OVERHEAD, OPS_OVERHEAD_MEAN, OPS_IDLE, OPS_IDLE_MEAN, OPS_KERNELS, OPS_ELIGIBLE, OPS_USES, OPS_TC_SHARE, OPS_STACK
};

static const struct section ops_section = {COLUMNS(
	[OPS_ID] = {COLUMN(TEXT, "op_id", "Op ID", "The op's type and a running number; of several ops the first.", .flags = COLUMN_DETAIL)},
	[OPS_NAME] = {COLUMN(TEXT, "name", "Op", "The op and where in the model it was called.", .flags = COLUMN_WIDE)},
	[OPS_TYPE] = {COLUMN(TEXT, "type", "Type", "The op alone; 'backward' where the forward op is not known.", .flags = COLUMN_DETAIL)},
	[OPS_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "forward, backward, optimizer; other for API calls outside ops.")},
	[OPS_SHAPES] = {COLUMN(TEXT, "shapes", "Input Shapes", "Of the first call; of a backward op those of its forward op.", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[OPS_DTYPE] = {COLUMN(TEXT, "data_type", "Data Type", "Types of its input tensors.", .flags = COLUMN_DETAIL)},
	[OPS_OPS] = {COLUMN(COUNT, "ops", "Ops", "How many ops this row adds up.", .flags = COLUMN_DETAIL)},
	[OPS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "How often it ran; of a backward op, how many nodes of autograd's graph did, of which a forward call can have "
	                      "several.")},
	[OPS_GPU] = {COLUMN(NS, "total_gpu_ns", "GPU Total", "Sum over its calls of the union of the device work that each launched.", .flags = COLUMN_ANSWER)},
	[OPS_SHARE] = {COLUMN(PERCENT, "gpu_pct", "GPU %", "Share of the GPU time of all ops.")},
	[OPS_GPU_MEAN] = {COLUMN(MEAN_NS, "mean_gpu_ns", "GPU Mean", "Mean of a call.", .flags = COLUMN_MINOR)},
	[OPS_GPU_MIN] = {COLUMN(NS, "min_gpu_ns", "GPU Min", "Of the call with least GPU time.", .flags = COLUMN_DETAIL)},
	[OPS_GPU_MAX] = {COLUMN(NS, "max_gpu_ns", "GPU Max", "Of the call with most GPU time.", .flags = COLUMN_DETAIL)},
	[OPS_CPU] = {COLUMN(NS, "total_cpu_ns", "CPU Total", "Sum of the lengths of its ranges on the host; of calls outside ops, of the calls.", .flags = COLUMN_ANSWER)},
	[OPS_CPU_MEAN] = {COLUMN(MEAN_NS, "mean_cpu_ns", "CPU Mean", "Mean of a call.", .flags = COLUMN_MINOR)},
	[OPS_CPU_MIN] = {COLUMN(NS, "min_cpu_ns", "CPU Min", "Of the shortest call.", .flags = COLUMN_DETAIL)},
	[OPS_CPU_MAX] = {COLUMN(NS, "max_cpu_ns", "CPU Max", "Of the longest call.", .flags = COLUMN_DETAIL)},
	[OPS_OVERHEAD] = {COLUMN(NS, "total_overhead_ns", "CPU Overhead", "CPU time outside API calls.", .flags = COLUMN_ANSWER)},
	[OPS_OVERHEAD_MEAN] = {COLUMN(MEAN_NS, "mean_overhead_ns", "Overhead Mean", "Mean of a call.", .flags = COLUMN_DETAIL)},
	[OPS_IDLE] = {COLUMN(NS, "total_idle_ns", "GPU Idle", "Between the first and the last device work of each call, the time in which none of its work ran.",
	                     .flags = COLUMN_ANSWER)},
	[OPS_IDLE_MEAN] = {COLUMN(MEAN_NS, "mean_idle_ns", "Idle Mean", "Mean of a call.", .flags = COLUMN_DETAIL)},
	[OPS_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "Kernels that it launched.", .flags = COLUMN_DETAIL)},
	[OPS_ELIGIBLE] = {COLUMN(YES_NO, "tc_eligible", "TC Eligible", "Whether it, or an op inside it, could use Tensor Cores by its type, or does; empty for calls "
	                         "outside ops.")},
	[OPS_USES] = {COLUMN(TEXT, "tc_used", "TC Used", "yes, no, or unknown where names of kernels do not tell.")},
	[OPS_TC_SHARE] = {COLUMN(PERCENT, "tc_pct", "TC %", "Share of its kernel time in kernels that use Tensor Cores.", .flags = COLUMN_DETAIL)},
	[OPS_STACK] = {COLUMN(TEXT, "stack", "Stack", "Lines that called it, outermost first, one a line.", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
)};

static struct str ops_shapes_of(const struct ops_rows_of *r, const struct op *op, struct arena *a)
{
	struct op_shapes s;
	op_instance_shapes(r->o, r->p, op->first, a, &s);
	return s.inputs;
}

/* The row of each op. Calls outside ops have one row for each name, whatever op they follow. */
static void ops_find_rows(struct ops_rows_of *r)
{
	struct intern keys;
	struct arena scratch = {0};
	struct buf key = {0};
	intern_init(&keys);
	for (uint32_t i = 0; i < r->o->n_ops; i++) {
		const struct op *op = &r->o->op[i];
		struct str what = r->by == BY_SHAPE ? op->type : op->name;
		buf_clear(&key);
		buf_printf(&key, "%d %zu ", op->direction, what.n);
		buf_str(&key, what);
		if (r->by == BY_OP && !op->unassociated)
			buf_printf(&key, " %u", i);
		else if (r->by == BY_SHAPE)
			buf_str(&key, ops_shapes_of(r, op, &scratch));
		uint32_t row = intern_str(&keys, buf_view(&key)) - 1;
		r->row[i] = row;
		if (row == r->n)
			r->op[r->n++] = i;
		r->ops[row]++;
	}
	intern_release(&keys);
	arena_release(&scratch);
	buf_release(&key);
}

static struct str tc_used(const struct op_sum *s)
{
	return !s->kernels ? STR("") : s->tc_kernels ? STR("yes") : s->unknown_ns ? STR("unknown") : STR("no");
}

static void ops_put_times(struct table *t, const struct op_sum *s, bool host)
{
	static const struct { uint8_t total, mean; } place[OP_TIMES] = {
		[OP_CPU] = {OPS_CPU, OPS_CPU_MEAN}, [OP_GPU] = {OPS_GPU, OPS_GPU_MEAN},
		[OP_OVERHEAD] = {OPS_OVERHEAD, OPS_OVERHEAD_MEAN}, [OP_IDLE] = {OPS_IDLE, OPS_IDLE_MEAN},
	};
	for (int i = 0; i < OP_TIMES; i++) {
		if (!host && i != OP_GPU)
			continue;
		table_set_i64(t, place[i].total, s->time[i].total);
		table_set_f64(t, place[i].mean, op_stat_mean(s, (enum op_time)i));
	}
	table_set_i64(t, OPS_GPU_MIN, s->time[OP_GPU].min);
	table_set_i64(t, OPS_GPU_MAX, s->time[OP_GPU].max);
	if (!host)
		return;
	table_set_i64(t, OPS_CPU_MIN, s->time[OP_CPU].min);
	table_set_i64(t, OPS_CPU_MAX, s->time[OP_CPU].max);
}

static void ops_put_row(const struct ops_rows_of *r, struct table *t, uint32_t row)
{
	const struct op *op = &r->o->op[r->op[row]];
	const struct op_sum *s = &r->sum[row];
	table_row(t);
	table_set_str(t, OPS_ID, op->id);
	table_set_str(t, OPS_NAME, r->by == BY_SHAPE ? op->type : op->name);
	table_set_str(t, OPS_TYPE, op->type);
	table_set_str(t, OPS_DIRECTION, str_from(direction_name[op->direction]));
	struct str shapes = ops_shapes_of(r, op, &t->arena);
	if (shapes.n && (r->by != BY_NAME || r->ops[row] == 1))
		table_set_str(t, OPS_SHAPES, shapes);
	if (op->data_type.n)
		table_set_str(t, OPS_DTYPE, op->data_type);
	table_set_i64(t, OPS_OPS, r->ops[row]);
	table_set_i64(t, OPS_CALLS, (int64_t)s->calls);
	ops_put_times(t, s, !r->p->durations_only);
	if (r->all_ns)
		table_set_f64(t, OPS_SHARE, 100.0 * (double)s->time[OP_GPU].total / (double)r->all_ns);
	table_set_i64(t, OPS_KERNELS, s->kernels);
	if (!op->unassociated)
		table_set_bool(t, OPS_ELIGIBLE, op_eligible(op));
	table_set_str(t, OPS_USES, tc_used(s));
	if (s->kernel_ns && !s->unknown_ns)
		table_set_f64(t, OPS_TC_SHARE, 100.0 * (double)s->tc_ns / (double)s->kernel_ns);
	if (op->stack.n && r->by == BY_OP)
		table_set_str(t, OPS_STACK, op->stack);
}

static void put_origin(struct table *t, const struct profile *p)
{
	static const char *const origin[] = {
		[OPS_MARKERS] = "ops are the outermost argument markers of PyProf or DLProf, else ranges of emit_nvtx",
		[OPS_AUTOGRAD] = "ops are the outermost ranges of emit_nvtx",
		[OPS_KINETO] = "ops are the outermost operators of each thread; what they call is theirs",
		[OPS_LIBRARY] = "ops are the nodes or layers that a framework or library marked",
		[OPS_STATED] = "ops are those that the input states",
	};
	enum op_origin from = p->ops->origin;
	if (from == OPS_NONE)
		table_warn(t, "the input holds no ops: rows are API calls and what they launched; to record ops: %s", recording_how(p, RECORD_OPS));
	else if (from == OPS_AUTOGRAD && str_eqc(p->format, "capture"))
		table_note(t, "ops are the outermost ones that emit_nvtx, emit_itt, opscope.torch or opscope/trace.h marked");
	else
		table_note(t, "%s", origin[from]);
}

/* Whether some rows differ by their shapes alone. */
static bool rows_look_alike(const struct ops_rows_of *r)
{
	struct intern seen;
	struct buf key = {0};
	bool alike = r->by == BY_SHAPE;
	intern_init(&seen);
	for (uint32_t i = 0; i < r->n && !alike && r->by == BY_OP; i++) {
		const struct op *op = &r->o->op[r->op[i]];
		uint32_t before = seen.n;
		buf_clear(&key);
		buf_printf(&key, "%d", op->direction);
		buf_str(&key, op->name);
		intern_str(&seen, buf_view(&key));
		alike = seen.n == before && !op->unassociated;
	}
	intern_release(&seen);
	buf_release(&key);
	return alike;
}

/* How many rows have more or fewer backward nodes than forward calls. */
static void note_nodes(const struct ops_rows_of *r, struct table *t)
{
	uint64_t *forward = NEW_ARRAY(r->o->n_ops, uint64_t); /* by row of backward ops: calls of all their forward ops */
	uint32_t *counted = NEW_ARRAY(r->o->n_ops, uint32_t); /* by forward row: the backward row that its calls were added to, + 1 */
	uint32_t differ = 0, linked = 0;
	for (uint32_t i = 0; i < r->o->n_ops; i++) {
		const struct op *op = &r->o->op[i];
		uint32_t row = op->forward == ROW_NONE ? ROW_NONE : r->row[op->forward];
		if (row != ROW_NONE && counted[row] != r->row[i] + 1) {
			counted[row] = r->row[i] + 1;
			forward[r->row[i]] += r->sum[row].calls;
		}
	}
	for (uint32_t i = 0; i < r->n; i++)
		if (r->sum[i].calls && r->o->op[r->op[i]].forward != ROW_NONE) {
			linked++;
			differ += r->sum[i].calls != forward[i];
		}
	if (differ)
		table_note(t, "Calls of backward ops are nodes of autograd's graph, of which a forward call can have several, or none: in %u of %u rows they are not as many as "
		           "forward calls", differ, linked);
	mem_free(forward);
	mem_free(counted);
}

static int ops_own_table(struct ops_rows_of *r, struct table *t, struct err *e)
{
	if (rows_look_alike(r))
		t->data[OPS_SHAPES].col.flags &= ~(unsigned)COLUMN_DETAIL;
	for (uint32_t i = 0; i < r->n; i++)
		r->all_ns += r->sum[i].time[OP_GPU].total;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->sum[i].calls)
			ops_put_row(r, t, i);
	op_note_parts(t, r->p, r->w);
	put_origin(t, r->p);
	note_nodes(r, t);
	if (r->p->durations_only)
		table_warn(t, "the input states durations of device work only: host times and idle times are unknown");
	return table_sort(t, str_from(r->p->gpu_op.rows.n ? "total_gpu_ns" : "total_cpu_ns"), true, e);
}

static int ops_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct ops_rows_of r = {.p = p, .o = p->ops, .w = &w, .by = (enum ops_grouping)args->variant->by, .tc = op_tc_new(p, false)};
	r.sum = NEW_ARRAY(r.o->n_ops, struct op_sum);
	r.row = NEW_ARRAY(r.o->n_ops, uint32_t);
	r.op = NEW_ARRAY(r.o->n_ops, uint32_t);
	r.ops = NEW_ARRAY(r.o->n_ops, uint32_t);
	ops_find_rows(&r);
	ops_sum_ops(&r);
	section_start(&ops_section, args, 0, out);
	int rc = ops_own_table(&r, out, e);
	mem_free(r.sum);
	mem_free(r.row);
	mem_free(r.op);
	mem_free(r.ops);
	op_tc_free(r.tc);
	return rc;
}

static const struct report_variant ops_variants[] = {
	{.group_by = "op", .by = BY_OP},
	{.group_by = "name", .by = BY_NAME},
	{.group_by = "shape", .by = BY_SHAPE},
	{0},
};

const struct report report_ops = {
	.name = "ops",
	.title = "Time by op",
	.help = "Each op of the model with all that its calls took: on the GPU the union of what each call launched, on the host the length of its "
	        "range, the part of that outside API calls (overhead), and how long the GPU had none of its work between its first and its last "
	        "(idle). An op is the outermost range of its thread at one place of the model, in one direction, with one set of shapes; what it "
	        "calls is part of it. Calls of a backward op are the nodes of autograd's graph that were recorded for it: of a linear layer the "
	        "product and its weights turned around, of a function of Python those of all functions that it calls. Where several lines of the program call one op at one place, the second has '(2)' behind its name, the third "
	        "'(3)'. API calls outside all ops have rows 'unassociated_...'. --group-by=name adds up shapes, --group-by=shape "
	        "places.",
	.variants = ops_variants,
	.sections = (const struct section *const[]){&ops_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_OPS,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = ops_run,
};
