/* Time by type of op. */
#include "base/intern.h"
#include "base/mem.h"
#include "query/op_sums.h"

struct op_types_type_row {
	struct str type;
	uint8_t direction;
	uint32_t ops;
	bool eligible, known;    /* known: not so for a call outside ops */
	struct op_sum sum;
};

struct op_types_types {
	const struct profile *p;
	struct op_types_type_row *v;
	uint32_t n;
	uint32_t *of_op;
	bool *seen;              /* op: counted in `ops` */
	struct arena texts;
};

static void op_types_find_types(struct op_types_types *x)
{
	const struct ops *o = x->p->ops;
	struct intern keys;
	intern_init(&keys);
	for (uint32_t i = 0; i < o->n_ops; i++) {
		const struct op *op = &o->op[i];
		struct str key = arena_printf(&x->texts, "%d" STR_FMT, op->direction, STR_ARG(op->type));
		uint32_t at = intern_str(&keys, key) - 1;
		x->of_op[i] = at;
		if (at == x->n)
			x->v[x->n++] = (struct op_types_type_row){.type = op->type, .direction = op->direction};
		x->v[at].eligible |= op_eligible(op);
		x->v[at].known |= !op->unassociated;
	}
	intern_release(&keys);
}

static void op_types_sum_types(struct op_types_types *x, const struct window *w, struct op_tc *tc)
{
	const struct ops *o = x->p->ops;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		if (!op_in_window(x->p, k, w))
			continue;
		uint32_t op = o->instance[k].op;
		struct op_types_type_row *r = &x->v[x->of_op[op]];
		r->ops += !x->seen[op];
		x->seen[op] = true;
		op_sum_add(&r->sum, x->p, k, tc);
	}
}

enum {
	OP_TYPES_TYPE, OP_TYPES_DIRECTION, OP_TYPES_OPS, OP_TYPES_CALLS, OP_TYPES_GPU, OP_TYPES_SHARE, OP_TYPES_GPU_MEAN, OP_TYPES_GPU_MIN, OP_TYPES_GPU_MAX, OP_TYPES_CPU,
	OP_TYPES_CPU_MEAN, OP_TYPES_OVERHEAD, OP_TYPES_IDLE, OP_TYPES_ELIGIBLE, OP_TYPES_TC_SHARE
};

static const struct section op_types_section = {COLUMNS(
	[OP_TYPES_TYPE] = {COLUMN(TEXT, "type", "Type", "The op alone; 'backward' where the forward op is not known; the call's name outside ops.")},
	[OP_TYPES_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "forward, backward, optimizer; other for API calls outside ops.")},
	[OP_TYPES_OPS] = {COLUMN(COUNT, "ops", "Ops", "How many ops are of it.", .flags = COLUMN_MINOR)},
	[OP_TYPES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "How often they ran.")},
	[OP_TYPES_GPU] = {COLUMN(NS, "total_gpu_ns", "GPU Total", "Sum over calls of the union of the device work that each launched.", .flags = COLUMN_ANSWER)},
	[OP_TYPES_SHARE] = {COLUMN(PERCENT, "gpu_pct", "GPU %", "Share of the GPU time of all ops.")},
	[OP_TYPES_GPU_MEAN] = {COLUMN(MEAN_NS, "mean_gpu_ns", "GPU Mean", "Mean of a call.", .flags = COLUMN_MINOR)},
	[OP_TYPES_GPU_MIN] = {COLUMN(NS, "min_gpu_ns", "GPU Min", "Of the call with least GPU time.", .flags = COLUMN_DETAIL)},
	[OP_TYPES_GPU_MAX] = {COLUMN(NS, "max_gpu_ns", "GPU Max", "Of the call with most GPU time.", .flags = COLUMN_DETAIL)},
	[OP_TYPES_CPU] = {COLUMN(NS, "total_cpu_ns", "CPU Total", "Sum of the lengths of its ranges on the host.", .flags = COLUMN_ANSWER)},
	[OP_TYPES_CPU_MEAN] = {COLUMN(MEAN_NS, "mean_cpu_ns", "CPU Mean", "Mean of a call.", .flags = COLUMN_MINOR)},
	[OP_TYPES_OVERHEAD] = {COLUMN(NS, "total_overhead_ns", "CPU Overhead", "CPU time outside API calls.", .flags = COLUMN_ANSWER)},
	[OP_TYPES_IDLE] = {COLUMN(NS, "total_idle_ns", "GPU Idle", "Between the first and the last device work of each call, the time in which none of its work ran.",
	                          .flags = COLUMN_ANSWER)},
	[OP_TYPES_ELIGIBLE] = {COLUMN(YES_NO, "tc_eligible", "TC Eligible", "Whether it, an op inside it or one of its kernels could use Tensor Cores; empty for calls "
	                              "outside ops.", .flags = COLUMN_MINOR)},
	[OP_TYPES_TC_SHARE] = {COLUMN(PERCENT, "tc_pct", "TC %", "Share of its kernel time in kernels that use Tensor Cores; empty where names do not tell.")},
)};

static void op_types_own_row(struct table *t, const struct op_types_type_row *r, int64_t all, bool host)
{
	const struct op_sum *s = &r->sum;
	table_row(t);
	table_set_str_copy(t, OP_TYPES_TYPE, r->type);
	table_set_str(t, OP_TYPES_DIRECTION, str_from(direction_name[r->direction]));
	table_set_i64(t, OP_TYPES_OPS, r->ops);
	table_set_i64(t, OP_TYPES_CALLS, (int64_t)s->calls);
	table_set_i64(t, OP_TYPES_GPU, s->time[OP_GPU].total);
	if (all)
		table_set_f64(t, OP_TYPES_SHARE, 100.0 * (double)s->time[OP_GPU].total / (double)all);
	table_set_f64(t, OP_TYPES_GPU_MEAN, op_stat_mean(s, OP_GPU));
	table_set_i64(t, OP_TYPES_GPU_MIN, s->time[OP_GPU].min);
	table_set_i64(t, OP_TYPES_GPU_MAX, s->time[OP_GPU].max);
	if (r->known)
		table_set_bool(t, OP_TYPES_ELIGIBLE, r->eligible);
	if (s->kernel_ns && !s->unknown_ns)
		table_set_f64(t, OP_TYPES_TC_SHARE, 100.0 * (double)s->tc_ns / (double)s->kernel_ns);
	if (!host)
		return;
	table_set_i64(t, OP_TYPES_CPU, s->time[OP_CPU].total);
	table_set_f64(t, OP_TYPES_CPU_MEAN, op_stat_mean(s, OP_CPU));
	table_set_i64(t, OP_TYPES_OVERHEAD, s->time[OP_OVERHEAD].total);
	table_set_i64(t, OP_TYPES_IDLE, s->time[OP_IDLE].total);
}

static int op_types_own_table(struct op_types_types *x, const struct window *w, struct table *t, struct err *e)
{
	int64_t all = 0;
	for (uint32_t i = 0; i < x->n; i++)
		all += x->v[i].sum.time[OP_GPU].total;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->v[i].sum.calls)
			op_types_own_row(t, &x->v[i], all, !x->p->durations_only);
	op_note_parts(t, x->p, w);
	return table_sort(t, str_from(x->p->gpu_op.rows.n ? "total_gpu_ns" : "total_cpu_ns"), true, e);
}

static int op_types_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct op_types_types x = {.p = p};
	struct op_tc *tc = op_tc_new(p, false);
	x.v = NEW_ARRAY(p->ops->n_ops, struct op_types_type_row);
	x.of_op = NEW_ARRAY(p->ops->n_ops, uint32_t);
	x.seen = NEW_ARRAY(p->ops->n_ops, bool);
	op_types_find_types(&x);
	op_types_sum_types(&x, &w, tc);
	section_start(&op_types_section, args, 0, out);
	int rc = op_types_own_table(&x, &w, out, e);
	arena_release(&x.texts);
	mem_free(x.v);
	mem_free(x.of_op);
	mem_free(x.seen);
	op_tc_free(tc);
	return rc;
}

const struct report report_op_types = {
	.name = "op-types",
	.title = "Time by type of op",
	.help = "The ops of `ops` added up by their type (conv2d, linear, ...) and direction, wherever in the model they are.",
	.sections = (const struct section *const[]){&op_types_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_OPS,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = op_types_run,
};
