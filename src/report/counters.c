/* Hardware counters of kernels, metric by metric. */
#include "analysis/costs/counters.h"
#include "analysis/tree/optree.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "query/window.h"

#include <math.h>

enum counters_by { COUNTERS_BY_NAME, COUNTERS_BY_INSTANCE };

enum {
	COUNTERS_KERNEL, COUNTERS_START, COUNTERS_OPERATOR, COUNTERS_METRIC, COUNTERS_UNIT, COUNTERS_VALUE, COUNTERS_CALLS, COUNTERS_MEAN, COUNTERS_MIN, COUNTERS_MAX, COUNTERS_TOLD
};

static const struct section counters_section = {COLUMNS(
	[COUNTERS_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	[COUNTERS_START] = {COLUMN(TIME, "start_ns", "Start", "when it began; of kernels that CUPTI's range profiler measured, a made-up time in their order"), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "op, collective or optimizer that launched it: the innermost, as in `operators`; empty = none known"), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_METRIC] = {COLUMN(TEXT, "metric", "Metric", "what was measured, as the profiler names it", .flags = COLUMN_WIDE | COLUMN_ANSWER)},
	[COUNTERS_UNIT] = {COLUMN(TEXT, "unit", "Unit", "of the figures of this row; empty = not stated, or none"), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_VALUE] = {COLUMN(REAL, "value", "Value", "measured", .digits = 2, .flags = COLUMN_ANSWER), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "launches that have it"), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MEAN] = {COLUMN(REAL, "mean", "Mean", "of these launches", .digits = 2, .flags = COLUMN_ANSWER), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MIN] = {COLUMN(REAL, "min", "Min", "lowest of them", .digits = 2), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MAX] = {COLUMN(REAL, "max", "Max", "highest of them", .digits = 2), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_TOLD] = {COLUMN(TEXT, "told_by", "Told by", "how the measured launch was told to be this one: order, row of launches; empty = measured in this recording"), .by = BY(COUNTERS_BY_INSTANCE)},
)};

/* A kernel that was measured. */
struct counters_kernel {
	uint32_t name, set, op;      /* string ids of its name and of what launched it, 0 = not known; its arguments */
	int64_t start_ns;
	struct str told;
};

struct counters_row {
	uint32_t name, metric;       /* string ids */
	uint64_t calls;
	double sum, min, max;
};

struct counters_list {
	struct counters_kernel *v;
	uint32_t n, cap;
	uint32_t ranges;             /* those of CUPTI's range profiler */
	uint32_t launches;           /* calls that launch a kernel, where there are ranges */
};

static bool counters_is_launch(struct str name)
{
	return str_starts(name, STR("cudaLaunchKernel")) || str_starts(name, STR("cuLaunchKernel"));
}

static uint32_t counters_op_of_call(const struct profile *p, uint32_t call)
{
	const uint32_t op = p->span.op[call];
	return op == ROW_NONE ? 0 : p->span.name[op];
}

/* Kernels that CUPTI's range profiler measured: the k-th is of the k-th launch, where there are as many. */
static void counters_add_ranges(const struct profile *p, const struct window *w, struct counters_list *l)
{
	struct sort_item *range = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item), *call = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (str_eqc(profile_cat(p, p->span.cat[i]), COUNTER_RANGES))
			range[l->ranges++] = (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0};
		else if (p->span.kind[i] == SPAN_CALL && counters_is_launch(profile_str(p, p->span.name[i])))
			call[l->launches++] = (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0};
	}
	sort_items(range, l->ranges);
	sort_items(call, l->launches);
	for (uint32_t i = 0; i < l->ranges; i++) {
		const uint32_t row = range[i].row;
		if (!w->all && l->ranges != l->launches)
			continue;
		if (!w->all && !window_has(w, p->span.start_ns[call[i].row]))
			continue;
		MEM_PUSH(l->v, l->n, l->cap, ((struct counters_kernel){.name = p->span.name[row], .set = p->span.args[row], .start_ns = p->span.start_ns[row],
		                                                      .op = l->ranges == l->launches ? counters_op_of_call(p, call[i].row) : 0}));
	}
	mem_free(range);
	mem_free(call);
}

static void counters_add_work(const struct profile *p, const struct window *w, struct counters_list *l)
{
	struct optree *t = optree_new(p, &optree_own);
	struct str told;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.kind[g] == GPU_KERNEL && profile_arg(p, p->gpu_op.args[g], ARG_COUNTERS, &told) && window_has_gpu(w, p, g))
			MEM_PUSH(l->v, l->n, l->cap, ((struct counters_kernel){p->gpu_op.name[g], p->gpu_op.args[g], optree_operator(t, p, g), p->gpu_op.start_ns[g], told}));
	optree_free(t);
}

static void counters_put_instance(struct table *out, const struct profile *p, const struct counters_kernel *k, uint32_t arg, double v)
{
	table_row(out);
	table_set_str(out, COUNTERS_KERNEL, profile_str(p, k->name));
	table_set_i64(out, COUNTERS_START, k->start_ns);
	if (k->op)
		table_set_str(out, COUNTERS_OPERATOR, profile_str(p, k->op));
	table_set_str(out, COUNTERS_METRIC, profile_str(p, p->arg.key[arg]));
	table_set_f64(out, COUNTERS_VALUE, v);
	table_set_str(out, COUNTERS_TOLD, k->told);
}

struct counters_groups {
	struct intern keys;
	struct counters_row *v;
	uint32_t n, cap;
};

static void counters_group(struct counters_groups *g, uint32_t name, uint32_t metric, double v)
{
	const uint32_t key[] = {name, metric}, before = g->keys.n, id = intern_put(&g->keys, (const char *)key, sizeof key) - 1;
	if (g->keys.n > before)
		MEM_PUSH(g->v, g->n, g->cap, (struct counters_row){.name = name, .metric = metric, .min = INFINITY, .max = -INFINITY});
	struct counters_row *x = &g->v[id];
	x->calls++;
	x->sum += v;
	x->min = fmin(x->min, v);
	x->max = fmax(x->max, v);
}

static void counters_put_groups(struct table *out, const struct profile *p, const struct counters_groups *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		const struct counters_row *x = &g->v[i];
		table_row(out);
		table_set_str(out, COUNTERS_KERNEL, profile_str(p, x->name));
		table_set_str(out, COUNTERS_METRIC, profile_str(p, x->metric));
		table_set_str(out, COUNTERS_UNIT, counter_unit(p, profile_str(p, x->metric)));
		table_set_i64(out, COUNTERS_CALLS, (int64_t)x->calls);
		table_set_f64(out, COUNTERS_MEAN, x->sum / (double)x->calls);
		table_set_f64(out, COUNTERS_MIN, x->min);
		table_set_f64(out, COUNTERS_MAX, x->max);
	}
}

static void counters_put(struct table *out, const struct profile *p, const struct counters_list *l, const struct report_args *args)
{
	struct counters_groups g = {0};
	intern_init(&g.keys);
	section_start(&counters_section, args, 0, out);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct counters_kernel *k = &l->v[i];
		const uint32_t end = k->set + 1 < p->arg_set.rows.n ? p->arg_set.first[k->set + 1] : p->arg.rows.n;
		for (uint32_t a = k->set ? p->arg_set.first[k->set] : end; a < end; a++) {
			const double v = counter_value(p, a);
			if (isnan(v))
				continue;
			if (args->variant->by == COUNTERS_BY_INSTANCE)
				counters_put_instance(out, p, k, a, v);
			else
				counters_group(&g, k->name, p->arg.key[a], v);
		}
	}
	counters_put_groups(out, p, &g);
	if (l->ranges)
		table_note(out, l->ranges == l->launches ? "%u kernels were measured by CUPTI's range profiler, one for each launch" :
		           "%u kernels or ranges were measured by CUPTI's range profiler, and %u kernels were launched: of which op each is, is not known", l->ranges, l->launches);
	intern_release(&g.keys);
	mem_free(g.v);
}

static int counters_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct counters_list l = {0};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	counters_add_work(p, &w, &l);
	counters_add_ranges(p, &w, &l);
	if (l.n)
		counters_put(out, p, &l, args);
	mem_free(l.v);
	return l.n ? 0 : err_set(e, ERR_DATA, w.all ? "the input holds no hardware counters; --counters=FILE adds those that ncu --csv --page raw measured of another run" : "no kernel in those steps has hardware counters");
}

static const struct report_variant counters_variants[] = {
	{.group_by = "name", .by = COUNTERS_BY_NAME},
	{.group_by = "instance", .by = COUNTERS_BY_INSTANCE},
	{0},
};

const struct report report_counters = {
	.name = "counters",
	.title = "Hardware counters of kernels",
	.also = "ncu cupti metrics hardware",
	.help = "What Nsight Compute (--counters=FILE) or CUPTI's range profiler (torch.profiler's profiler_metrics) measured of each kernel, metric by metric, in base units: byte, ns, inst. --group-by=instance "
	        "lists each launch with the op that launched it.",
	.variants = counters_variants,
	.sections = (const struct section *const[]){&counters_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = counters_run,
};
