/* Ops that could use Tensor Cores, and whether they do: DLProf's tensor core report. */
#include "analysis/costs.h"
#include "analysis/short_names.h"
#include "analysis/tc_use.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "report/op_sums.h"

#include <stdlib.h>

/* Names of the kernels of one op, each once. */
struct kernel_set {
	uint32_t *v, n, cap;     /* string ids of kernels' names */
};

/* What an op's kernels that could use Tensor Cores took. */
struct possible {
	int64_t ns, tc_ns, unknown_ns;
	uint32_t kernels, tc_kernels;
};

struct eligible {
	const struct profile *p;
	const struct window *w;
	bool dlprof;
	struct short_names *names;
	struct op_sum *sum;      /* by op */
	struct possible *part;   /* by op; DLProf's table counts all kernels of its ops */
	uint8_t *could;          /* gpu_op -> could use them; NULL in DLProf's table */
	struct kernel_set *tc_names, *other_names, *unknown_names;
	struct costs *costs;     /* NULL in DLProf's table */
	uint32_t *last_tc;       /* string id -> op + 1 in whose set it was put last: instances of one op come one after the other */
};

static struct kernel_set *set_of(struct eligible *x, uint32_t op, enum tri uses)
{
	return &(uses == TRI_YES ? x->tc_names : uses == TRI_NO ? x->other_names : x->unknown_names)[op];
}

static void add_possible(struct possible *s, struct eligible *x, uint32_t g)
{
	int64_t ns = x->p->gpu_op.dur_ns[g];
	enum tri uses = op_tc_of(x->p, g, x->dlprof);
	s->ns += ns;
	s->tc_ns += uses == TRI_YES ? ns : 0;
	s->unknown_ns += uses == TRI_UNKNOWN ? ns : 0;
	s->kernels++;
	s->tc_kernels += uses == TRI_YES;
}

static void add_kernels(struct eligible *x, uint32_t k)
{
	const struct ops *o = x->p->ops;
	const struct op_instance *in = &o->instance[k];
	for (uint32_t i = 0; i < in->gpu_n; i++) {
		uint32_t g = o->gpu[in->gpu_first + i], name = x->p->gpu_op.name[g];
		if (x->p->gpu_op.kind[g] != GPU_KERNEL || (x->could && !x->could[g]))
			continue;
		add_possible(&x->part[in->op], x, g);
		if (x->last_tc[name] == in->op + 1)
			continue;
		x->last_tc[name] = in->op + 1;
		struct kernel_set *s = set_of(x, in->op, op_tc_of(x->p, g, x->dlprof));
		MEM_GROW(s->v, s->cap, s->n + 1);
		s->v[s->n++] = name;
	}
}

/* Instances by op, so that a kernel's name enters an op's set once. */
static void sum_all(struct eligible *x)
{
	const struct ops *o = x->p->ops;
	uint32_t *first = NEW_ARRAY((size_t)o->n_ops + 1, uint32_t), *by_op = NEW_ARRAY_RAW(o->n_instances, uint32_t);
	for (uint32_t k = 0; k < o->n_instances; k++)
		first[o->instance[k].op + 1]++;
	for (uint32_t i = 0; i < o->n_ops; i++)
		first[i + 1] += first[i];
	for (uint32_t k = 0; k < o->n_instances; k++)
		by_op[first[o->instance[k].op]++] = k;
	for (uint32_t i = 0; i < o->n_instances; i++) {
		uint32_t k = by_op[i];
		if ((x->dlprof && !op_eligible(&o->op[o->instance[k].op], true)) || !op_in_window(x->p, k, x->w))
			continue;
		op_sum_add(&x->sum[o->instance[k].op], x->p, k, x->dlprof);
		add_kernels(x, k);
	}
	mem_free(first);
	mem_free(by_op);
}

static int compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Short names, DLProf's or our own, distinct, sorted, joined by ", "; *count of them. */
static struct str joined(const struct eligible *x, const struct kernel_set *s, struct arena *a, int64_t *count)
{
	struct intern names;
	struct buf b = {0};
	intern_init(&names);
	for (uint32_t i = 0; i < s->n; i++) {
		struct str name = profile_str(x->p, s->v[i]);
		buf_clear(&b);
		if (x->dlprof)
			buf_str(&b, kernel_function_name(name));
		else
			buf_str(&b, short_names_get(x->names, s->v[i]));
		intern_str(&names, buf_view(&b));
	}
	struct str *v = NEW_ARRAY(names.n, struct str);
	*count = names.n - 1;
	for (uint32_t i = 1; i < names.n; i++)
		v[i - 1] = intern_get(&names, i);
	qsort(v, names.n - 1, sizeof *v, compare_names);
	buf_clear(&b);
	for (uint32_t i = 1; i < names.n; i++) {
		buf_cstr(&b, i > 1 ? ", " : "");
		buf_str(&b, v[i - 1]);
	}
	struct str out = arena_str(a, b.n ? buf_view(&b) : (struct str){"", 0});
	intern_release(&names);
	buf_release(&b);
	mem_free(v);
	return out;
}

enum {
	D_ID, D_NAME, D_DIRECTION, D_TYPE, D_USES, D_TOTAL, D_TC, D_OTHER, D_SHARE, D_KERNELS, D_TC_KERNELS, D_TC_NAMES, D_OTHER_KERNELS,
	D_OTHER_NAMES, D_COLUMNS,
};
static const struct column dlprof_columns[D_COLUMNS] = {
	[D_ID] = {"op_id", "Op ID", "The op's type and a running number.", CELL_STR, UNIT_NONE, 0, 0},
	[D_NAME] = {"op_name", "Op Name", "The op and where in the program it was called.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_PATH, 0},
	[D_DIRECTION] = {"direction", "Direction", "fprop or bprop.", CELL_STR, UNIT_NONE, 0, 0},
	[D_TYPE] = {"op_type", "Op Type", "The op alone.", CELL_STR, UNIT_NONE, 0, 0},
	[D_USES] = {"uses_tc", "Uses TC", "Whether any of its kernels uses Tensor Cores.", CELL_BOOL, UNIT_NONE, 0, 0},
	[D_TOTAL] = {"total_gpu_time_ns", "Total GPU Time (ns)", "Sum of its kernels' durations.", CELL_I64, UNIT_NONE, 0, 0},
	[D_TC] = {"tc_gpu_time_ns", "TC GPU Time (ns)", "Of kernels that use Tensor Cores.", CELL_I64, UNIT_NONE, 0, 0},
	[D_OTHER] = {"non_tc_gpu_time_ns", "Non-TC GPU Time (ns)", "Of all other kernels.", CELL_I64, UNIT_NONE, 0, 0},
	[D_SHARE] = {"tc_utilization", "TC Utilization (%)", "Share of the first in the sum.", CELL_F64, UNIT_NONE, 0, 1},
	[D_KERNELS] = {"total_kernel_count", "Total Kernel Count", "Distinct names of kernels.", CELL_I64, UNIT_NONE, 0, 0},
	[D_TC_KERNELS] = {"tc_kernel_count", "TC Kernel Count", "Of these, with Tensor Cores.", CELL_I64, UNIT_NONE, 0, 0},
	[D_TC_NAMES] = {"tc_kernel_names", "TC Kernel Names", "Their names.", CELL_STR, UNIT_NONE, COLUMN_WIDE, 0},
	[D_OTHER_KERNELS] = {"non_tc_kernel_count", "Non-TC Kernel Count", "Without.", CELL_I64, UNIT_NONE, 0, 0},
	[D_OTHER_NAMES] = {"non_tc_kernel_names", "Non-TC Kernel Names", "Their names.", CELL_STR, UNIT_NONE, COLUMN_WIDE, 0},
};

static void dlprof_row(struct table *t, const struct eligible *x, const struct op_dlprof_row *r)
{
	const struct op *op = &x->p->ops->op[r->op];
	const struct op_sum *s = &x->sum[r->op];
	int64_t tc, other; /* DLProf counts names */
	struct str tc_names = joined(x, &x->tc_names[r->op], &t->arena, &tc);
	struct str other_names = joined(x, &x->other_names[r->op], &t->arena, &other);
	table_row(t);
	table_set_str(t, D_ID, r->names.id);
	table_set_str(t, D_NAME, r->names.name);
	table_set_str(t, D_DIRECTION, op_dlprof_direction(op));
	table_set_str(t, D_TYPE, r->names.type);
	table_set_bool(t, D_USES, s->tc_kernels > 0);
	table_set_i64(t, D_TOTAL, s->kernel_ns);
	table_set_i64(t, D_TC, s->tc_ns);
	table_set_i64(t, D_OTHER, s->kernel_ns - s->tc_ns);
	table_set_f64(t, D_SHARE, s->kernel_ns ? 100.0 * (double)s->tc_ns / (double)s->kernel_ns : 0);
	table_set_i64(t, D_KERNELS, tc + other);
	table_set_i64(t, D_TC_KERNELS, tc);
	table_set_str(t, D_TC_NAMES, tc_names);
	table_set_i64(t, D_OTHER_KERNELS, other);
	table_set_str(t, D_OTHER_NAMES, other_names);
}

static void dlprof_table(const struct eligible *x, struct table *t)
{
	uint32_t n;
	struct op_dlprof_row *order = op_dlprof_order(x->p, &t->arena, &n);
	table_columns(t, dlprof_columns, D_COLUMNS);
	for (uint32_t i = 0; i < n; i++)
		if (x->sum[order[i].op].calls)
			dlprof_row(t, x, &order[i]);
	op_dlprof_hints(t, x->p, x->w, HINT_KERNELS);
	mem_free(order);
}

enum {
	C_ID, C_NAME, C_TYPE, C_DIRECTION, C_SHAPES, C_DTYPE, C_POSSIBLE, C_CALLS, C_TOTAL, C_COULD, C_USED, C_TC, C_OTHER, C_UNKNOWN, C_SHARE, C_KERNELS,
	C_TC_KERNELS, C_TC_NAMES, C_OTHER_NAMES, C_UNKNOWN_NAMES, N_COLUMNS,
};
static const struct column own_columns[N_COLUMNS] = {
	[C_ID] = {"op_id", "Op ID", "The op's type and a running number.", CELL_STR, UNIT_NONE, COLUMN_DETAIL, 0},
	[C_NAME] = {"name", "Op", "The op and where in the model it was called.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_PATH, 0},
	[C_TYPE] = {"type", "Type", "The op alone.", CELL_STR, UNIT_NONE, COLUMN_DETAIL, 0},
	[C_DIRECTION] = {"direction", "Direction", "forward, backward, optimizer.", CELL_STR, UNIT_NONE, 0, 0},
	[C_SHAPES] = {"shapes", "Input Shapes", "Of the first call; of a backward op those of its forward op.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_MINOR, 0},
	[C_DTYPE] = {"data_type", "Data Type", "Types of its input tensors.", CELL_STR, UNIT_NONE, COLUMN_MINOR, 0},
	[C_POSSIBLE] = {"tc_possible", "Fits TC", "By types and shapes of the first call: could its main kernel use Tensor Cores? Yes, too, where a kernel does; unknown where they were not "
	                "recorded.",
	                CELL_STR, UNIT_NONE, 0, 0},
	[C_CALLS] = {"calls", "Calls", "How often it ran.", CELL_I64, UNIT_COUNT, 0, 0},
	[C_TOTAL] = {"total_kernel_ns", "Kernels", "Sum of the durations of its kernels, copies and sets left out.",
	             CELL_I64, UNIT_NS, 0, 0},
	[C_COULD] = {"possible_ns", "Products", "Of these, kernels that its products and convolutions launched: they could use Tensor Cores, or do. Not what else runs inside it, "
	             "all-reduces or elementwise kernels.",
	             CELL_I64, UNIT_NS, COLUMN_KEY, 0},
	[C_USED] = {"tc_used", "TC Used", "Whether one of these uses them: yes, no, or unknown where names of kernels do not tell; empty: there are none.",
	            CELL_STR, UNIT_NONE, COLUMN_KEY, 0},
	[C_TC] = {"tc_ns", "With TC", "Of these, kernels that use Tensor Cores.", CELL_I64, UNIT_NS, COLUMN_KEY, 0},
	[C_OTHER] = {"non_tc_ns", "Without", "Of these, kernels that do not.", CELL_I64, UNIT_NS, COLUMN_KEY, 0},
	[C_UNKNOWN] = {"unknown_ns", "Unknown", "Of these, kernels whose name does not tell.", CELL_I64, UNIT_NS, 0, 0},
	[C_SHARE] = {"tc_pct", "TC %", "Share of those with Tensor Cores in the time of all that could use them; empty where part is unknown.",
	             CELL_F64, UNIT_PERCENT, COLUMN_KEY, 0},
	[C_KERNELS] = {"kernels", "Launches", "Kernels that could use Tensor Cores.", CELL_I64, UNIT_COUNT, COLUMN_DETAIL, 0},
	[C_TC_KERNELS] = {"tc_kernels", "TC Launches", "Of these, with Tensor Cores.", CELL_I64, UNIT_COUNT, COLUMN_DETAIL, 0},
	[C_TC_NAMES] = {"tc_kernel_names", "TC Kernels", "Short names.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_DETAIL, 0},
	[C_OTHER_NAMES] = {"non_tc_kernel_names", "Other Kernels", "Short names.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_DETAIL, 0},
	[C_UNKNOWN_NAMES] = {"unknown_kernel_names", "Unknown Kernels", "Short names.", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_DETAIL, 0},
};

/* By what it does; else by the model of what it should take, of a backward op by that of its forward op. */
static struct str possible(const struct eligible *x, const struct op *op, bool used)
{
	static const char *const answer[] = {[TRI_NO] = "no", [TRI_YES] = "yes", [TRI_UNKNOWN] = "unknown"};
	const struct ops *o = x->p->ops;
	uint32_t span = o->instance[op->forward == ROW_NONE ? op->first : o->op[op->forward].first].span;
	if (used)
		return STR("yes");
	if (span == ROW_NONE || !x->costs)
		return STR("unknown");
	enum cost_direction d = op->direction == DIR_BACKWARD ? COST_BACKWARD : COST_FORWARD;
	const struct cost *c = costs_of_span(x->costs, x->p, span, d);
	return c ? str_from(answer[c->tc_eligible]) : STR("unknown");
}

static void own_row(struct table *t, const struct eligible *x, uint32_t i)
{
	const struct op *op = &x->p->ops->op[i];
	const struct possible *s = &x->part[i];
	struct op_shapes shapes;
	int64_t n;
	op_instance_shapes(x->p->ops, x->p, op->first, &t->arena, &shapes);
	table_row(t);
	table_set_str(t, C_ID, op->id);
	table_set_str(t, C_NAME, op->name);
	table_set_str(t, C_TYPE, op->type);
	table_set_str(t, C_DIRECTION, str_from(direction_name[op->direction]));
	if (shapes.inputs.n)
		table_set_str(t, C_SHAPES, shapes.inputs);
	if (op->data_type.n)
		table_set_str(t, C_DTYPE, op->data_type);
	table_set_str(t, C_POSSIBLE, possible(x, op, s->tc_kernels > 0));
	table_set_i64(t, C_CALLS, (int64_t)x->sum[i].calls);
	table_set_i64(t, C_TOTAL, x->sum[i].kernel_ns);
	table_set_i64(t, C_COULD, s->ns);
	if (s->kernels)
		table_set_str(t, C_USED, s->tc_kernels ? STR("yes") : s->unknown_ns ? STR("unknown") : STR("no"));
	table_set_i64(t, C_TC, s->tc_ns);
	table_set_i64(t, C_OTHER, s->ns - s->tc_ns - s->unknown_ns);
	table_set_i64(t, C_UNKNOWN, s->unknown_ns);
	if (s->ns && !s->unknown_ns)
		table_set_f64(t, C_SHARE, 100.0 * (double)s->tc_ns / (double)s->ns);
	table_set_i64(t, C_KERNELS, s->kernels);
	table_set_i64(t, C_TC_KERNELS, s->tc_kernels);
	table_set_str(t, C_TC_NAMES, joined(x, &x->tc_names[i], &t->arena, &n));
	table_set_str(t, C_OTHER_NAMES, joined(x, &x->other_names[i], &t->arena, &n));
	table_set_str(t, C_UNKNOWN_NAMES, joined(x, &x->unknown_names[i], &t->arena, &n));
}

static int own_table(const struct eligible *x, struct table *t, struct err *e)
{
	int64_t part[3] = {0}, all = 0;
	table_columns(t, own_columns, N_COLUMNS);
	for (uint32_t i = 0; i < x->p->ops->n_ops; i++) {
		const struct possible *s = &x->part[i];
		part[0] += s->tc_ns;
		part[1] += s->ns - s->tc_ns - s->unknown_ns;
		part[2] += s->unknown_ns;
		if (x->sum[i].calls && (s->kernels || op_eligible(&x->p->ops->op[i], false)))
			own_row(t, x, i);
	}
	for (uint32_t g = 0; g < x->p->gpu_op.rows.n; g++)
		if (x->p->gpu_op.kind[g] == GPU_KERNEL && window_has_gpu(x->w, x->p, g))
			all += x->p->gpu_op.dur_ns[g];
	table_note(t, "kernels %lld ns = could use Tensor Cores %lld (with %lld, without %lld, unknown %lld) + all others %lld",
	           (long long)all, (long long)(part[0] + part[1] + part[2]), (long long)part[0], (long long)part[1], (long long)part[2],
	           (long long)(all - part[0] - part[1] - part[2]));
	return table_sort(t, STR("possible_ns"), true, e);
}

static void eligible_release(struct eligible *x)
{
	for (uint32_t i = 0; i < x->p->ops->n_ops; i++) {
		mem_free(x->tc_names[i].v);
		mem_free(x->other_names[i].v);
		mem_free(x->unknown_names[i].v);
	}
	mem_free(x->tc_names);
	mem_free(x->other_names);
	mem_free(x->unknown_names);
	mem_free(x->last_tc);
	mem_free(x->sum);
	mem_free(x->part);
	mem_free(x->could);
	short_names_free(x->names);
	costs_free(x->costs);
}

static int tensor_cores_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	bool dlprof = report_compat_is(args, "dlprof");
	uint32_t n = p->ops->n_ops;
	if (op_check(p, e) < 0 || op_window(p, args, &w, e) < 0)
		return -1;
	struct eligible x = {.p = p, .w = &w, .dlprof = dlprof, .names = dlprof ? NULL : short_names_new(p)};
	x.costs = dlprof ? NULL : costs_new(p, COST_DEFAULT);
	x.sum = NEW_ARRAY(n, struct op_sum);
	x.part = NEW_ARRAY(n, struct possible);
	if (!dlprof) {
		struct optree *t = optree_new(p, OPTREE_DEFAULT);
		x.could = tc_could_use(p, t);
		optree_free(t);
	}
	x.tc_names = NEW_ARRAY(n, struct kernel_set);
	x.other_names = NEW_ARRAY(n, struct kernel_set);
	x.unknown_names = NEW_ARRAY(n, struct kernel_set);
	x.last_tc = NEW_ARRAY(p->strings.n, uint32_t);
	sum_all(&x);
	int rc = 0;
	if (dlprof)
		dlprof_table(&x, out);
	else
		rc = own_table(&x, out, e);
	eligible_release(&x);
	return rc;
}

static const struct report_variant tensor_cores_variants[] = {
	{.compat = "dlprof"},
	{0},
};

const struct report report_tensor_cores = {
	.name = "tensor-cores",
	.title = "Tensor Cores by op",
	.asks = ASKS_FASTER,
	.also = "tensorcores tc",
	.help = "The ops with kernels that could use Tensor Cores (those of convolutions and products of matrices), how much of the time of these does, and in which "
	        "kernels. `advise` measures the same kernels. What no name of a kernel tells is shown as unknown. `--sort=non_tc_ns` lists first what runs without them; `gemm` and `conv` say for single calls what shape or type is in the way.",
	.variants = tensor_cores_variants,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_OPS,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = tensor_cores_run,
};
