/* Ops that could use Tensor Cores, and whether they do. */
#include "analysis/costs/costs.h"
#include "analysis/costs/tc_use.h"
#include "analysis/names/short_names.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/search.h"
#include "query/op_kernels.h"

/* The time of an op's kernels that could use Tensor Cores. */
struct possible {
	int64_t ns, tc_ns, unknown_ns;
	uint32_t kernels, tc_kernels;
};

struct tensor_cores_eligible {
	const struct profile *p;
	const struct window *w;
	struct op_tc *tc;
	struct short_names *names;
	struct op_sum *sum;      /* by op */
	struct possible *part;   /* by op */
	uint8_t *could;          /* by gpu_op: could use Tensor Cores */
	struct op_kernels kernels; /* that could */
	struct costs *costs;
	bool recorded;           /* the input has kernels */
};

static void add_possible(struct possible *s, struct tensor_cores_eligible *x, uint32_t g)
{
	int64_t ns = x->p->gpu_op.dur_ns[g];
	enum tri uses = op_tc_of(x->tc, g);
	s->ns += ns;
	s->tc_ns += uses == TRI_YES ? ns : 0;
	s->unknown_ns += uses == TRI_UNKNOWN ? ns : 0;
	s->kernels++;
	s->tc_kernels += uses == TRI_YES;
}

static void tensor_cores_add_kernels(struct tensor_cores_eligible *x, uint32_t k)
{
	const struct ops *o = x->p->ops;
	const struct op_instance *in = &o->instance[k];
	for (uint32_t i = 0; i < in->gpu_n; i++) {
		uint32_t g = o->gpu[in->gpu_first + i];
		if (x->p->gpu_op.kind[g] != GPU_KERNEL || !x->could[g])
			continue;
		add_possible(&x->part[in->op], x, g);
		op_kernels_add(&x->kernels, in->op, g);
	}
}

static void tensor_cores_sum_all(struct tensor_cores_eligible *x)
{
	const struct ops *o = x->p->ops;
	uint32_t *by_op = op_instances_by_op(o);
	for (uint32_t i = 0; i < o->n_instances; i++) {
		if (!op_in_window(x->p, by_op[i], x->w))
			continue;
		op_sum_add(&x->sum[o->instance[by_op[i]].op], x->p, by_op[i], x->tc);
		tensor_cores_add_kernels(x, by_op[i]);
	}
	mem_free(by_op);
}

static struct str tensor_cores_short_name(const void *names, uint32_t name)
{
	return short_names_get(names, name);
}

enum {
	TENSOR_CORES_ID, TENSOR_CORES_NAME, TENSOR_CORES_TYPE, TENSOR_CORES_DIRECTION, TENSOR_CORES_SHAPES, TENSOR_CORES_DTYPE, TENSOR_CORES_POSSIBLE, TENSOR_CORES_CALLS,
	TENSOR_CORES_TOTAL, TENSOR_CORES_COULD, TENSOR_CORES_USED, TENSOR_CORES_TC, TENSOR_CORES_OTHER, TENSOR_CORES_UNKNOWN, TENSOR_CORES_SHARE, TENSOR_CORES_KERNELS,
	TENSOR_CORES_TC_KERNELS, TENSOR_CORES_TC_NAMES, TENSOR_CORES_OTHER_NAMES, TENSOR_CORES_UNKNOWN_NAMES
};

static const struct section tensor_cores_section = {COLUMNS(
	[TENSOR_CORES_ID] = {COLUMN(TEXT, "op_id", "Op ID", "The op's type and a running number.", .flags = COLUMN_DETAIL)},
	[TENSOR_CORES_NAME] = {COLUMN(TEXT, "name", "Op", "The op and where in the model it was called.", .flags = COLUMN_WIDE | COLUMN_PATH)},
	[TENSOR_CORES_TYPE] = {COLUMN(TEXT, "type", "Type", "The op alone.", .flags = COLUMN_DETAIL)},
	[TENSOR_CORES_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "forward, backward, optimizer.")},
	[TENSOR_CORES_SHAPES] = {COLUMN(TEXT, "shapes", "Input Shapes", "Of the first call; of a backward op those of its forward op.",
	                                .flags = COLUMN_WIDE | COLUMN_MINOR)},
	[TENSOR_CORES_DTYPE] = {COLUMN(TEXT, "data_type", "Data Type", "Types of its input tensors.", .flags = COLUMN_MINOR)},
	[TENSOR_CORES_POSSIBLE] = {COLUMN(TEXT, "tc_possible", "Fits TC", "By types and shapes of the first call: could its main kernel use Tensor Cores? Yes, too, "
	                                  "where a kernel does; unknown where they were not recorded.")},
	[TENSOR_CORES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "How often it ran.")},
	[TENSOR_CORES_TOTAL] = {COLUMN(NS, "total_kernel_ns", "Kernels", "Sum of the durations of its kernels, copies and sets left out.")},
	[TENSOR_CORES_COULD] = {COLUMN(NS, "possible_ns", "Products", "Of these, kernels that its products and convolutions launched: they could use Tensor Cores, or "
	                               "do. Not what else runs inside it, all-reduces or elementwise kernels.", .flags = COLUMN_ANSWER)},
	[TENSOR_CORES_USED] = {COLUMN(TEXT, "tc_used", "TC Used", "Whether one of these uses them: yes, no, or unknown where names of kernels do not tell; empty: there "
	                              "are none.", .flags = COLUMN_ANSWER)},
	[TENSOR_CORES_TC] = {COLUMN(NS, "tc_ns", "With TC", "Of these, kernels that use Tensor Cores.", .flags = COLUMN_ANSWER)},
	[TENSOR_CORES_OTHER] = {COLUMN(NS, "non_tc_ns", "Without", "Of these, kernels that do not.", .flags = COLUMN_ANSWER)},
	[TENSOR_CORES_UNKNOWN] = {COLUMN(NS, "unknown_ns", "Unknown", "Of these, kernels whose name does not tell.")},
	[TENSOR_CORES_SHARE] = {COLUMN(PERCENT, "tc_pct", "TC %", "Time with Tensor Cores / time of all kernels that could use them; empty where part is unknown.",
	                               .flags = COLUMN_ANSWER)},
	[TENSOR_CORES_KERNELS] = {COLUMN(COUNT, "kernels", "Launches", "Kernels that could use Tensor Cores.", .flags = COLUMN_DETAIL)},
	[TENSOR_CORES_TC_KERNELS] = {COLUMN(COUNT, "tc_kernels", "TC Launches", "Of these, with Tensor Cores.", .flags = COLUMN_DETAIL)},
	[TENSOR_CORES_TC_NAMES] = {COLUMN(TEXT, "tc_kernel_names", "TC Kernels", "Short names.", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[TENSOR_CORES_OTHER_NAMES] = {COLUMN(TEXT, "non_tc_kernel_names", "Other Kernels", "Short names.", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
	[TENSOR_CORES_UNKNOWN_NAMES] = {COLUMN(TEXT, "unknown_kernel_names", "Unknown Kernels", "Short names.", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
)};

/* Whether the op could use Tensor Cores: yes where a kernel of it does, else as its cost model says; a backward op goes by the model of its forward op. */
static struct str possible(const struct tensor_cores_eligible *x, const struct op *op, bool used)
{
	const struct ops *o = x->p->ops;
	uint32_t span = o->instance[op->forward == ROW_NONE ? op->first : o->op[op->forward].first].span;
	if (used)
		return STR("yes");
	if (span == ROW_NONE)
		return STR("unknown");
	enum cost_direction d = op->direction == DIR_BACKWARD ? COST_BACKWARD : COST_FORWARD;
	const struct cost *c = costs_of_span(x->costs, x->p, span, d);
	return c ? str_from(tri_name[c->tc_eligible]) : STR("unknown");
}

/* What the op's kernels took, with Tensor Cores and without. */
static void tensor_cores_put_kernels(struct table *t, const struct tensor_cores_eligible *x, uint32_t i)
{
	const struct possible *s = &x->part[i];
	int64_t n;
	table_set_i64(t, TENSOR_CORES_TOTAL, x->sum[i].kernel_ns);
	table_set_i64(t, TENSOR_CORES_COULD, s->ns);
	if (s->kernels)
		table_set_str(t, TENSOR_CORES_USED, s->tc_kernels ? STR("yes") : s->unknown_ns ? STR("unknown") : STR("no"));
	table_set_i64(t, TENSOR_CORES_TC, s->tc_ns);
	table_set_i64(t, TENSOR_CORES_OTHER, s->ns - s->tc_ns - s->unknown_ns);
	table_set_i64(t, TENSOR_CORES_UNKNOWN, s->unknown_ns);
	if (s->ns && !s->unknown_ns)
		table_set_f64(t, TENSOR_CORES_SHARE, 100.0 * (double)s->tc_ns / (double)s->ns);
	table_set_i64(t, TENSOR_CORES_KERNELS, s->kernels);
	table_set_i64(t, TENSOR_CORES_TC_KERNELS, s->tc_kernels);
	table_set_str(t, TENSOR_CORES_TC_NAMES, op_kernels_text(&x->kernels, i, TRI_YES, tensor_cores_short_name, x->names, &t->arena, &n));
	table_set_str(t, TENSOR_CORES_OTHER_NAMES, op_kernels_text(&x->kernels, i, TRI_NO, tensor_cores_short_name, x->names, &t->arena, &n));
	table_set_str(t, TENSOR_CORES_UNKNOWN_NAMES, op_kernels_text(&x->kernels, i, TRI_UNKNOWN, tensor_cores_short_name, x->names, &t->arena, &n));
}

static void tensor_cores_own_row(struct table *t, const struct tensor_cores_eligible *x, uint32_t i)
{
	const struct op *op = &x->p->ops->op[i];
	struct op_shapes shapes;
	op_instance_shapes(x->p->ops, x->p, op->first, &t->arena, &shapes);
	table_row(t);
	table_set_str(t, TENSOR_CORES_ID, op->id);
	table_set_str(t, TENSOR_CORES_NAME, op->name);
	table_set_str(t, TENSOR_CORES_TYPE, op->type);
	table_set_str(t, TENSOR_CORES_DIRECTION, str_from(direction_name[op->direction]));
	if (shapes.inputs.n)
		table_set_str(t, TENSOR_CORES_SHAPES, shapes.inputs);
	if (op->data_type.n)
		table_set_str(t, TENSOR_CORES_DTYPE, op->data_type);
	table_set_str(t, TENSOR_CORES_POSSIBLE, possible(x, op, x->part[i].tc_kernels > 0));
	table_set_i64(t, TENSOR_CORES_CALLS, (int64_t)x->sum[i].calls);
	if (x->recorded)
		tensor_cores_put_kernels(t, x, i);
}

static int tensor_cores_own_table(const struct tensor_cores_eligible *x, struct table *t, struct err *e)
{
	int64_t part[3] = {0}, all = 0;
	for (uint32_t i = 0; i < x->p->ops->n_ops; i++) {
		const struct possible *s = &x->part[i];
		part[0] += s->tc_ns;
		part[1] += s->ns - s->tc_ns - s->unknown_ns;
		part[2] += s->unknown_ns;
		if (x->sum[i].calls && (s->kernels || op_eligible(&x->p->ops->op[i])))
			tensor_cores_own_row(t, x, i);
	}
	for (uint32_t g = 0; g < x->p->gpu_op.rows.n; g++)
		if (x->p->gpu_op.kind[g] == GPU_KERNEL && window_has_gpu(x->w, x->p, g))
			all += x->p->gpu_op.dur_ns[g];
	if (!x->recorded)
		table_warn(t, "whether Tensor Cores are used is unknown: the input holds no kernels; to record them: %s", recording_how(x->p, RECORD_DEVICE_WORK));
	else
		table_note(t, "kernels %lld ns = could use Tensor Cores %lld (with %lld, without %lld, unknown %lld) + all others %lld",
		           (long long)all, (long long)(part[0] + part[1] + part[2]), (long long)part[0], (long long)part[1], (long long)part[2],
		           (long long)(all - part[0] - part[1] - part[2]));
	return table_sort(t, STR("possible_ns"), true, e);
}

static int tensor_cores_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct tensor_cores_eligible x = {.p = p, .w = &w, .tc = op_tc_new(p, false), .names = short_names_new(p), .costs = costs_new(p, &cost_own)};
	struct optree *t = optree_new(p, &optree_own);
	x.could = tc_could_use(p, t);
	optree_free(t);
	x.recorded = ANY_WHERE(g, 0, p->gpu_op.rows.n, p->gpu_op.kind[g] == GPU_KERNEL);
	x.sum = NEW_ARRAY(p->ops->n_ops, struct op_sum);
	x.part = NEW_ARRAY(p->ops->n_ops, struct possible);
	op_kernels_init(&x.kernels, p, x.tc);
	tensor_cores_sum_all(&x);
	section_start(&tensor_cores_section, args, 0, out);
	int rc = tensor_cores_own_table(&x, out, e);
	op_kernels_release(&x.kernels);
	mem_free(x.sum);
	mem_free(x.part);
	mem_free(x.could);
	op_tc_free(x.tc);
	short_names_free(x.names);
	costs_free(x.costs);
	return rc;
}

const struct report report_tensor_cores = {
	.name = "tensor-cores",
	.title = "Tensor Cores by op",
	.asks = ASKS_FASTER,
	.also = "tensorcores tc",
	.help = "The ops with kernels that could use Tensor Cores (those of convolutions and products of matrices), how much of their time uses them, and in which "
	        "kernels. `advise` measures the same kernels. Where the name of a kernel does not tell, the report says unknown. `--sort=non_tc_ns` lists first "
	        "what runs without them; `gemm` and `conv` say for single calls what shape or type is in the way.",
	.sections = (const struct section *const[]){&tensor_cores_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_OPS,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = tensor_cores_run,
};
