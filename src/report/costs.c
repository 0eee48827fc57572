/* What each op should cost: one row per distinct call (op, shapes, types, values), with the time of the device work that it covers. */
#include "analysis/costs/costs.h"

#include "analysis/names/stacks.h"
#include "analysis/recording.h"
#include "analysis/tree/modules.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/round.h"
#include "report/parts/cost_calls.h"

#include <math.h>

/* An op with neither a rule nor device work of its own has nothing to tell, and a view does nothing: such calls have no row. */
static bool costs_shown(const struct cost_calls *r, uint32_t i)
{
	const struct cost *m = &r->costs->cost[i];
	return r->v[i].calls && (r->v[i].gpu_ns > 0 || (m->class != OP_UNKNOWN && m->class != OP_VIEW));
}

static void set_known(struct table *out, unsigned col, int64_t v)
{
	if (v >= 0)
		table_set_i64(out, col, v);
}

enum {
	COSTS_OP, COSTS_DIRECTION, COSTS_DIMS, COSTS_TYPES, COSTS_PARAMS, COSTS_CLASS, COSTS_DTYPE, COSTS_TC, COSTS_CALLS, COSTS_GPU, COSTS_SHARE, COSTS_FLOPS, COSTS_BYTES,
	COSTS_AI, COSTS_LEAST, COSTS_READ, COSTS_WRITTEN, COSTS_WIRE, COSTS_CAUSAL, COSTS_FORMULA, COSTS_MODULE, COSTS_PATH, COSTS_CALLER, COSTS_STACK, COSTS_WHY
};

static const struct section costs_section = {COLUMNS(
	[COSTS_OP] = {COLUMN(TEXT, "op", "Operator", "the op; where a forward op explains a backward pass, that forward op", .flags = COLUMN_ANSWER)},
	[COSTS_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "backward: an op of the backward pass by its name, or the cost of the backward of this forward op")},
	[COSTS_DIMS] = {COLUMN(TEXT, "input_dims", "Input Dims", "shapes as recorded", .flags = COLUMN_WIDE)},
	[COSTS_TYPES] = {COLUMN(TEXT, "input_types", "Input Types", "types as recorded", .flags = COLUMN_DETAIL)},
	[COSTS_PARAMS] = {COLUMN(TEXT, "params", "Parameters", "dimensions and parameters that the formula takes", .flags = COLUMN_WIDE)},
	[COSTS_CLASS] = {COLUMN(TEXT, "class", "Class", "what kind of op it is")},
	[COSTS_DTYPE] = {COLUMN(TEXT, "dtype", "Type", "type of the operands that decide")},
	[COSTS_TC] = {COLUMN(TEXT, "tc_eligible", "TC Eligible", "whether its main kernel could use Tensor Cores, by op, type and shape: yes, no, unknown")},
	[COSTS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it was called in this way")},
	[COSTS_GPU] = {COLUMN(NS, "gpu_ns", "GPU Time", "device work that these calls are the innermost model of", .flags = COLUMN_ANSWER)},
	[COSTS_SHARE] = {COLUMN(PERCENT, "gpu_pct", "GPU %", "of the time of all device work: kernels, copies and sets")},
	[COSTS_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of one call; a multiply-add is 2", .flags = COLUMN_ANSWER)},
	[COSTS_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "of one call: inputs and outputs once; of a mixture of experts, the weights of those that an even choice reads", .flags = COLUMN_ANSWER)},
	[COSTS_AI] = {COLUMN(REAL, "flops_per_byte", "FLOPs/Byte", "arithmetic intensity")},
	[COSTS_LEAST] = {COLUMN(BYTES, "bytes_least", "Bytes At Least", "of one call, whatever is in its inputs: of a mixture of experts, the weights of the fewest",
	                        .flags = COLUMN_DETAIL)},
	[COSTS_READ] = {COLUMN(BYTES, "bytes_read", "Bytes Read", "of one call", .flags = COLUMN_DETAIL)},
	[COSTS_WRITTEN] = {COLUMN(BYTES, "bytes_written", "Bytes Written", "of one call", .flags = COLUMN_DETAIL)},
	[COSTS_WIRE] = {COLUMN(BYTES, "wire_bytes", "Wire Bytes", "collectives: what a rank sends; this / time is the bus bandwidth of nccl-tests",
	                       .flags = COLUMN_DETAIL)},
	[COSTS_CAUSAL] = {COLUMN(FLOPS, "flops_causal", "Causal FLOPs", "attention with a causal mask: only the pairs that it leaves", .flags = COLUMN_DETAIL)},
	[COSTS_FORMULA] = {COLUMN(TEXT, "formula", "Formula", "FLOPs by name of dimension", .flags = COLUMN_DETAIL)},
	[COSTS_MODULE] = {COLUMN(TEXT, "module", "Module", "type of the innermost module around the first of these calls that launched work (as the three columns that follow); empty = in none",
	                         .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[COSTS_PATH] = {COLUMN(TEXT, "module_path", "Module Path", "the modules around it, outermost first", .flags = COLUMN_DETAIL | COLUMN_WIDE | COLUMN_PATH), .when = WHEN_RECORDED},
	[COSTS_CALLER] = {COLUMN(TEXT, "called_by", "Called By", "the innermost function of Python around it that is neither built in nor of torch itself, nor a decorator's wrapper", .flags = COLUMN_DETAIL | COLUMN_WIDE), .when = WHEN_STACKS},
	[COSTS_STACK] = {COLUMN(TEXT, "call_stack", "Call Stack", "the functions of Python around it, as in `operators --group-by=stack`", .flags = COLUMN_DETAIL | COLUMN_WIDE),
	                 .when = WHEN_STACKS},
	[COSTS_WHY] = {COLUMN(TEXT, "why", "Unknown Because", "why FLOPs or bytes are unknown", .flags = COLUMN_WIDE)},
)};

/* Where calls stand in the program. */
struct costs_places {
	struct modules *modules;
	struct stacks *stacks;
	struct buf text;
};

/* "Linear" of "Linear_3". */
static struct str module_type(const struct modules *m, uint32_t node)
{
	const struct module_node *x = &m->tree.v[node];
	struct str name = intern_get(&m->tree.names, x->type ? x->type : x->name);
	size_t n = name.n;
	while (!x->type && n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--;
	return n && n < name.n && name.p[n - 1] == '_' ? (struct str){name.p, n - 1} : name;
}

/* What lies between a function of the program and the op that it calls. */
static bool is_between(struct str frame)
{
	return str_starts(frame, STR("<built-in")) || str_starts(frame, STR("torch/")) || str_has(frame, STR("/torch/")) || str_starts(frame, STR("nn.Module: ")) ||
	       str_has(frame, STR("wrapper"));
}

static void costs_put_place(struct table *out, struct costs_places *x, uint32_t span)
{
	uint32_t node = x->modules->place ? module_tree_live(&x->modules->tree, x->modules->place[span]) : MODULE_NONE, stack = stacks_of(x->stacks, span);
	struct str frame;
	if (node != MODULE_NONE) {
		table_set_str_copy(out, COSTS_MODULE, module_type(x->modules, node));
		buf_clear(&x->text);
		module_tree_path(&x->modules->tree, node, &x->text);
		table_set_str_copy(out, COSTS_PATH, buf_view(&x->text));
	}
	buf_clear(&x->text);
	stacks_text(x->stacks, stack, &x->text);
	if (x->text.n)
		table_set_str_copy(out, COSTS_STACK, buf_view(&x->text));
	while (stacks_pop(x->stacks, &stack, &frame)) {
		if (is_between(frame))
			continue;
		table_set_str_copy(out, COSTS_CALLER, frame);
		break;
	}
}

static void costs_put_row(struct table *out, const struct cost_calls *r, struct costs_places *places, uint32_t i)
{
	const struct cost *m = &r->costs->cost[i];
	enum cost_direction d;
	struct op_facts f = costs_facts(r->costs, r->p, i, &d);
	table_row(out);
	table_set_str_copy(out, COSTS_OP, f.name);
	table_set_str(out, COSTS_DIRECTION, d == COST_BACKWARD || str_has_nocase(f.name, STR("backward")) ? STR("backward") : STR("forward"));
	if (f.dims.n)
		table_set_str(out, COSTS_DIMS, f.dims);
	if (f.types.n)
		table_set_str(out, COSTS_TYPES, f.types);
	if (m->params.n)
		table_set_str_copy(out, COSTS_PARAMS, m->params);
	table_set_str(out, COSTS_CLASS, str_from(op_class_name[m->class]));
	if (m->dtype != DTYPE_UNKNOWN)
		table_set_str(out, COSTS_DTYPE, str_from(dtype_name(m->dtype)));
	table_set_str(out, COSTS_TC, str_from(tri_name[m->tc_eligible]));
	table_set_i64(out, COSTS_CALLS, (int64_t)r->v[i].calls);
	table_set_i64(out, COSTS_GPU, r->v[i].gpu_ns);
	table_set_f64(out, COSTS_SHARE, percent((double)r->v[i].gpu_ns, (double)r->device_ns));
	if (r->v[i].span != ROW_NONE)
		costs_put_place(out, places, r->v[i].span);
	set_known(out, COSTS_FLOPS, m->flops);
	set_known(out, COSTS_BYTES, m->bytes);
	if (m->flops >= 0 && m->bytes > 0)
		table_set_f64(out, COSTS_AI, (double)m->flops / (double)m->bytes);
	set_known(out, COSTS_LEAST, m->bytes_least);
	set_known(out, COSTS_READ, m->bytes_read);
	set_known(out, COSTS_WRITTEN, m->bytes_written);
	set_known(out, COSTS_WIRE, m->wire_bytes);
	set_known(out, COSTS_CAUSAL, m->flops_causal);
	if (m->formula.n)
		table_set_str_copy(out, COSTS_FORMULA, m->formula);
	if (m->why.n)
		table_set_str_copy(out, COSTS_WHY, m->why);
}

static void costs_notes(struct table *out, const struct costs *c)
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
	struct cost_calls *r = cost_calls_new(p, &cost_own, e);
	if (!r)
		return -1;
	struct costs_places places = {.modules = modules_new(p, &modules_own, NULL), .stacks = stacks_new(p)};
	bool modules = places.modules->source != MODULES_NONE;
	section_start(&costs_section, args, WHEN_RECORDED | (stacks_any(places.stacks) ? WHEN_STACKS : 0), out);
	for (unsigned c = COSTS_MODULE; !modules && c <= COSTS_PATH; c++)
		section_leave_out(&costs_section, c, out);
	for (uint32_t i = 0; i < r->n; i++)
		if (costs_shown(r, i))
			costs_put_row(out, r, &places, i);
	costs_notes(out, r->costs);
	modules_free(places.modules);
	stacks_free(places.stacks);
	buf_release(&places.text);
	cost_calls_free(r);
	return table_sort(out, STR("gpu_ns"), true, e);
}

const struct report report_costs = {
	.name = "costs",
	.title = "What ops should cost: FLOPs and bytes",
	.asks = ASKS_FASTER,
	.also = "flops bytes cost",
	.help = "FLOPs and bytes of every distinct call of an op, by its shapes, types and parameters, with the formula, and the time of the "
	        "kernels that it explains; where something is unknown, why. FLOPs count a multiply-add as 2, bytes are what an ideal kernel "
	        "reads and writes once.",
	.sections = (const struct section *const[]){&costs_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = costs_run,
};
