#include "report/parts/kernel_calls.h"

#include "analysis/names/short_names.h"
#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "analysis/tree/gpu_ranges.h"
#include "analysis/tree/optree.h"
#include "analysis/tree/sources.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "query/op_sums.h"
#include "report/parts/kernel_groups.h"
#include "report/parts/launch_limit.h"

enum {
	KERNEL_CALLS_STEP, KERNEL_CALLS_OP_ID, KERNEL_CALLS_OP, KERNEL_CALLS_DIRECTION, KERNEL_CALLS_TYPE, KERNEL_CALLS_OPERATOR, KERNEL_CALLS_ANNOTATION, KERNEL_CALLS_KERNEL,
	KERNEL_CALLS_DEVICE, KERNEL_CALLS_STREAM, KERNEL_CALLS_START, KERNEL_CALLS_DUR, KERNEL_CALLS_CALL_START, KERNEL_CALLS_CALL_DUR, KERNEL_CALLS_WAIT,
	KERNEL_CALLS_TC, KERNEL_CALLS_GRID, KERNEL_CALLS_BLOCK, KERNEL_CALLS_LIMIT, KERNEL_CALLS_DTYPE = KERNEL_CALLS_LIMIT + LAUNCH_LIMIT_COLUMNS, KERNEL_CALLS_INPUTS, KERNEL_CALLS_PARAMS, KERNEL_CALLS_OUTPUTS,
	KERNEL_CALLS_NAME, KERNEL_CALLS_LINES
};

const struct section kernel_calls_section = {.by = BY(KERNELS_BY_INSTANCE), COLUMNS(
	[KERNEL_CALLS_STEP] = {COLUMN(NUMBER, "step", "Step", "number of the step in which it was launched; empty = in none")},
	[KERNEL_CALLS_OP_ID] = {COLUMN(TEXT, "op_id", "Op ID", "the op's type and a running number, as in `ops`", .flags = COLUMN_DETAIL)},
	[KERNEL_CALLS_OP] = {COLUMN(TEXT, "op", "Op", "the op that it belongs to: the outermost, with its place in the model, as in `ops`; empty = none",
	                            .flags = COLUMN_WIDE | COLUMN_PATH)},
	[KERNEL_CALLS_DIRECTION] = {COLUMN(TEXT, "direction", "Dir", "forward, backward, optimizer; other outside all ops")},
	[KERNEL_CALLS_TYPE] = {COLUMN(TEXT, "op_type", "Op type", "the op alone, without its place", .flags = COLUMN_DETAIL)},
	[KERNEL_CALLS_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "op, collective or optimizer that launched it: the innermost, as with --group-by=op; empty = "
	                                  "none known", .flags = COLUMN_MINOR)},
	[KERNEL_CALLS_ANNOTATION] = {COLUMN(TEXT, "annotation", "Annotation", "the innermost annotation of its stream in which it starts; empty = none", .flags = COLUMN_MINOR),
	                             .when = WHEN_RECORDED},
	[KERNEL_CALLS_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "short name", .flags = COLUMN_WIDE | COLUMN_ANSWER, .short_of = "kernel_name")},
	[KERNEL_CALLS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_MINOR)},
	[KERNEL_CALLS_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "stream", .flags = COLUMN_MINOR)},
	[KERNEL_CALLS_START] = {COLUMN(TIME, "start_ns", "Start", "when it began")},
	[KERNEL_CALLS_DUR] = {COLUMN(NS, "dur_ns", "Duration", "how long it ran", .flags = COLUMN_ANSWER)},
	[KERNEL_CALLS_CALL_START] = {COLUMN(TIME, "api_start_ns", "API start", "when the call that launched it began", .flags = COLUMN_DETAIL)},
	[KERNEL_CALLS_CALL_DUR] = {COLUMN(NS, "api_ns", "API", "how long that call took")},
	[KERNEL_CALLS_WAIT] = {COLUMN(NS, "wait_ns", "Waited", "from the start of the call to its own start")},
	[KERNEL_CALLS_TC] = {COLUMN(TEXT, "tensor_cores", "TC", "whether it used Tensor Cores: yes, no or unknown")},
	[KERNEL_CALLS_GRID] = {COLUMN(TEXT, "grid", "Grid", "blocks in x, y, z", .flags = COLUMN_MINOR)},
	[KERNEL_CALLS_BLOCK] = {COLUMN(TEXT, "block", "Block", "threads of a block in x, y, z", .flags = COLUMN_MINOR)},
	LAUNCH_LIMIT_COLUMN_LIST(KERNEL_CALLS_LIMIT, 0),
	[KERNEL_CALLS_DTYPE] = {COLUMN(TEXT, "data_types", "Types", "of the op's input tensors", .flags = COLUMN_DETAIL)},
	[KERNEL_CALLS_INPUTS] = {COLUMN(TEXT, "input_shapes", "Input shapes", "of the op", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[KERNEL_CALLS_PARAMS] = {COLUMN(TEXT, "parameters", "Parameters", "of the op", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[KERNEL_CALLS_OUTPUTS] = {COLUMN(TEXT, "output_shapes", "Output shapes", "of the op, where they follow from what was recorded",
	                                 .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[KERNEL_CALLS_NAME] = {COLUMN(TEXT, "kernel_name", "Kernel name", "full name", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[KERNEL_CALLS_LINES] = {COLUMN(TEXT, "source_lines", "Source lines", "lines of the program that compiled code launched it for, as in `compile`; empty = not known",
	                               .flags = COLUMN_WIDE | COLUMN_PATH), .when = WHEN_SOURCES},
)};

struct kernel_calls_calls {
	const struct profile *p;
	struct table *out;
	struct op_tc *tc;
	struct optree *tree;
	uint32_t instance;       /* the op instance that `shapes` belong to; ROW_NONE */
	struct op_shapes shapes;
	struct short_names *names;
	struct gpu_ranges ranges;
};

/* The step whose host range contains this moment; ROW_NONE. */
static uint32_t kernel_calls_step_at(const struct steps *s, int64_t at)
{
	uint32_t later = FIRST_WHERE(i, 0, s->whole_trace ? 0 : s->total, s->v[i].host_start_ns > at);
	return later && at < s->v[later - 1].host_end_ns ? later - 1 : ROW_NONE;
}

static void put_three(struct kernel_calls_calls *x, unsigned col, int32_t a, int32_t b, int32_t c)
{
	if (a != INT32_MIN)
		table_set_fmt(x->out, col, "%d,%d,%d", a, b, c);
}

static void kernel_calls_put_text(struct kernel_calls_calls *x, unsigned col, struct str s)
{
	if (s.n)
		table_set_str(x->out, col, s);
}

static void kernel_calls_put_op(struct kernel_calls_calls *x, uint32_t k)
{
	const struct ops *o = x->p->ops;
	const struct op *op = &o->op[o->instance[k].op];
	table_set_str(x->out, KERNEL_CALLS_DIRECTION, str_from(direction_name[op->direction]));
	if (op->unassociated || o->instance[k].span == ROW_NONE)
		return;
	table_set_str(x->out, KERNEL_CALLS_OP_ID, op->id);
	table_set_str(x->out, KERNEL_CALLS_OP, op->name);
	table_set_str(x->out, KERNEL_CALLS_TYPE, op->type);
	if (x->instance != k)
		op_instance_shapes(o, x->p, k, &x->out->arena, &x->shapes);
	x->instance = k;
	kernel_calls_put_text(x, KERNEL_CALLS_DTYPE, x->shapes.data_types);
	kernel_calls_put_text(x, KERNEL_CALLS_INPUTS, x->shapes.inputs);
	kernel_calls_put_text(x, KERNEL_CALLS_PARAMS, x->shapes.parameters);
	if (!x->shapes.assumed)
		kernel_calls_put_text(x, KERNEL_CALLS_OUTPUTS, x->shapes.outputs);
}

static void put_call(struct kernel_calls_calls *x, uint32_t g)
{
	const struct profile *p = x->p;
	uint32_t call = p->gpu_op.call[g], step;
	if (call == ROW_NONE)
		return;
	table_set_i64(x->out, KERNEL_CALLS_CALL_START, p->span.start_ns[call]);
	table_set_i64(x->out, KERNEL_CALLS_CALL_DUR, p->span.dur_ns[call]);
	table_set_i64(x->out, KERNEL_CALLS_WAIT, p->gpu_op.start_ns[g] - p->span.start_ns[call]);
	step = kernel_calls_step_at(p->steps, p->span.start_ns[call]);
	if (step != ROW_NONE)
		table_set_i64(x->out, KERNEL_CALLS_STEP, p->steps->v[step].number);
}

static void kernel_calls_put_row(struct kernel_calls_calls *x, uint32_t g)
{
	const struct profile *p = x->p;
	const struct launches *l = &p->launch;
	uint32_t row = p->gpu_op.launch[g];
	struct str name = profile_str(p, p->gpu_op.name[g]);
	table_row(x->out);
	table_set_str_copy(x->out, KERNEL_CALLS_KERNEL, short_names_get(x->names, p->gpu_op.name[g]));
	table_set_str(x->out, KERNEL_CALLS_NAME, name);
	if (l->device[row] != INT32_MIN)
		table_set_i64(x->out, KERNEL_CALLS_DEVICE, l->device[row]);
	if (l->stream[row] != ID_NONE)
		table_set_i64(x->out, KERNEL_CALLS_STREAM, l->stream[row]);
	table_set_i64(x->out, KERNEL_CALLS_START, p->gpu_op.start_ns[g]);
	table_set_i64(x->out, KERNEL_CALLS_DUR, p->gpu_op.dur_ns[g]);
	table_set_str(x->out, KERNEL_CALLS_TC, str_from(tri_name[op_tc_of(x->tc, g)]));
	put_three(x, KERNEL_CALLS_GRID, l->grid_x[row], l->grid_y[row], l->grid_z[row]);
	put_three(x, KERNEL_CALLS_BLOCK, l->block_x[row], l->block_y[row], l->block_z[row]);
	launch_limit_put(p, row, x->out, KERNEL_CALLS_LIMIT);
	uint32_t operator = optree_operator(x->tree, p, g);
	if (operator)
		table_set_str(x->out, KERNEL_CALLS_OPERATOR, profile_str(p, operator));
	kernel_calls_put_text(x, KERNEL_CALLS_LINES, sources_of(p, p->gpu_op.args[g]).lines);
	if (x->ranges.n && x->ranges.of_gpu[g] != ROW_NONE)
		table_set_str(x->out, KERNEL_CALLS_ANNOTATION, profile_str(p, p->span.name[x->ranges.of_gpu[g]]));
	kernel_calls_put_op(x, p->ops->of_gpu[g]);
	put_call(x, g);
}

int kernel_calls(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	int64_t device = INT64_MIN, all_ns = 0, in_ops = 0;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	if (args->device && !str_to_i64(str_from(args->device), &device))
		return err_set(e, ERR_USAGE, "--device=%s: a GPU number was expected", args->device);
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || !window_has_gpu(&w, p, g) ||
		    (args->device && p->launch.device[p->gpu_op.launch[g]] != device))
			continue;
		const struct op_instance *in = &p->ops->instance[p->ops->of_gpu[g]];
		all_ns += p->gpu_op.dur_ns[g];
		in_ops += in->span != ROW_NONE && !p->ops->op[in->op].unassociated ? p->gpu_op.dur_ns[g] : 0;
		v[n++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	}
	int rc = 0;
	if (!n && (args->device || !w.all))
		rc = err_set(e, ERR_DATA, "no kernel of the trace is on that device or in those steps");
	else if (!n)
		rc = err_set(e, ERR_DATA, "the input holds no kernels; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
	sort_items(v, n);
	struct kernel_calls_calls x = {.p = p, .out = t, .tc = op_tc_new(p, false), .instance = ROW_NONE, .tree = optree_new(p, &optree_own), .names = short_names_new(p)};
	uint32_t shown = args->row_limit && args->row_limit < n ? (uint32_t)args->row_limit : n;
	gpu_ranges_find(p, &x.ranges);
	if (rc == 0) {
		section_start(&kernel_calls_section, args, WHEN_RECORDED | (sources_any(p) ? WHEN_SOURCES : 0), t);
		if (!x.ranges.n)
			section_leave_out(&kernel_calls_section, KERNEL_CALLS_ANNOTATION, t);
		for (uint32_t i = 0; i < shown; i++)
			kernel_calls_put_row(&x, v[i].row);
		t->hidden_rows = n - shown;
		table_note(t, "kernels %lld ns = in ops of the model %lld + in none %lld", (long long)all_ns, (long long)in_ops, (long long)(all_ns - in_ops));
	}
	gpu_ranges_release(&x.ranges);
	op_tc_free(x.tc);
	optree_free(x.tree);
	short_names_free(x.names);
	mem_free(v);
	return rc;
}
