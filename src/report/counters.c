/* Hardware counters of kernels, metric by metric, with the op that launched the kernel. They have three sources:
 *
 *   Nsight Compute             counters of another run, joined with this one (open/counters_join.h)
 *   CUPTI's range profiler     Kineto's events cuda_profiler_range. Such a recording runs kernels one by one and has no kernel events. A range has no correlation id: the
 *                              k-th range is of the k-th launch if there are as many ranges as launches
 *   samples of the GPU         means over the samples that lie in the kernel (store/sampled.h) */
#include "analysis/costs/counters.h"
#include "analysis/costs/sampled.h"
#include "analysis/tree/optree.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "query/window.h"

#include <math.h>

enum counters_by { COUNTERS_BY_NAME, COUNTERS_BY_INSTANCE };

enum {
	COUNTERS_KERNEL, COUNTERS_START, COUNTERS_OPERATOR, COUNTERS_TOP, COUNTERS_METRIC, COUNTERS_UNIT, COUNTERS_VALUE, COUNTERS_CALLS, COUNTERS_SUM, COUNTERS_MEAN, COUNTERS_MIN, COUNTERS_MAX,
	COUNTERS_TOLD, COUNTERS_SAMPLES
};

static const struct section counters_section = {COLUMNS(
	[COUNTERS_KERNEL] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	[COUNTERS_START] = {COLUMN(TIME, "start_ns", "Start", "start of the kernel; of one that CUPTI's range profiler measured, a made-up time that keeps the order"), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "the innermost op, collective or optimizer around the launch; empty = none, or not known", .flags = COLUMN_GROUP | COLUMN_ANSWER)},
	[COUNTERS_TOP] = {COLUMN(TEXT, "top_operator", "Outermost Op", "the outermost op, collective or optimizer around the launch", .flags = COLUMN_MINOR)},
	[COUNTERS_METRIC] = {COLUMN(TEXT, "metric", "Metric", "the profiler's name of the metric; flops = the operations that its counters of SASS instructions count, a fused multiply-add as 2", .flags = COLUMN_WIDE | COLUMN_ANSWER)},
	[COUNTERS_UNIT] = {COLUMN(TEXT, "unit", "Unit", "unit of the figures of this row; empty = none, or not stated"), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_VALUE] = {COLUMN(REAL, "value", "Value", "value of the metric in this launch", .digits = 2, .flags = COLUMN_ANSWER), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "launches with this metric"), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_SUM] = {COLUMN(REAL, "sum", "Sum", "sum over these launches; of shares and rates it means nothing; of samples it is empty", .digits = 0), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MEAN] = {COLUMN(REAL, "mean", "Mean", "mean over these launches; of samples the mean over time", .digits = 2, .flags = COLUMN_ANSWER), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MIN] = {COLUMN(REAL, "min", "Min", "lowest value of these launches", .digits = 2, .flags = COLUMN_MINOR), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_MAX] = {COLUMN(REAL, "max", "Max", "highest value of these launches", .digits = 2, .flags = COLUMN_MINOR), .by = BY(COUNTERS_BY_NAME)},
	[COUNTERS_TOLD] = {COLUMN(TEXT, "told_by", "Told by", "how the measured launch was told to be this one: order, or row of launches; samples = the mean of the GPU's samples that lie in this launch, which ran alone; empty = measured in this recording"), .by = BY(COUNTERS_BY_INSTANCE)},
	[COUNTERS_SAMPLES] = {COLUMN(COUNT, "samples", "Samples", "samples of the GPU whose mean this is; empty = a counter", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
)};

/* String ids; of `op` and `top` 0 = not known. */
struct counters_of {
	uint32_t name, op, top;
};

/* Compared as bytes. */
struct counters_alike {
	struct counters_of of;
	uint32_t set;
};

/* A kernel that was measured. */
struct counters_kernel {
	struct counters_of of;
	uint32_t set;            /* its arguments */
	uint64_t calls;          /* launches that are alike in what was measured and around them */
	uint32_t first, end;     /* of samples: the arguments that are metrics */
	int64_t start_ns;
	struct str told;
	int64_t samples, ns;     /* the samples whose means the metrics are, and the time that they cover; 0 = the metrics are counters */
	bool shared;             /* the samples lie in several calls of the kernel */
};

struct counters_key {
	struct counters_of of;
	uint32_t metric;         /* string id; 0 = FLOPs */
	uint32_t source;         /* enum counters_source */
};
/* Counters; samples of single calls; samples of several calls together. */
enum counters_source { COUNTERS_COUNTED, COUNTERS_OF_CALLS, COUNTERS_OF_NAME };

struct counters_row {
	struct counters_key key;
	uint64_t calls;
	double sum, min, max;
	double weight, weighted; /* of samples: sum of their times, sum of value x time */
	uint64_t samples;
};

struct counters {
	const struct profile *p;
	struct optree *tree;
	struct counters_kernel *v;
	uint32_t n, cap;
	uint32_t ranges;         /* kernels that CUPTI's range profiler measured */
	uint32_t launches;       /* calls that launch a kernel, where there are ranges */
	struct intern alike;     /* of these launches: what they are grouped by, and the set */
	struct intern keys;
	struct counters_row *row; /* by group, in order of their first launch */
	uint32_t n_rows, cap_rows;
};

static bool counters_is_launch(struct str name)
{
	return str_starts(name, STR("cudaLaunchKernel")) || str_starts(name, STR("cuLaunchKernel"));
}

static bool counters_launches(const struct optree *t, uint32_t node)
{
	const uint8_t kind = t->kind[node];
	return kind == NODE_OP || kind == NODE_EXCLUDED_OP || kind == NODE_COMM || kind == NODE_OPTIMIZER;
}

static struct counters_of counters_around(const struct counters *c, uint32_t name, uint32_t node)
{
	const struct optree *t = c->tree;
	struct counters_of of = {.name = name};
	for (; node != ROW_NONE; node = t->parent[node]) {
		if (!counters_launches(t, node))
			continue;
		of.top = c->p->span.name[t->span[node]];
		of.op = of.op ? of.op : of.top;
	}
	return of;
}

/* Kernels that CUPTI's range profiler measured. */
static void counters_add_ranges(struct counters *c, const struct window *w)
{
	const struct profile *p = c->p;
	struct sort_item *range = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item), *call = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (str_eqc(profile_cat(p, p->span.cat[i]), COUNTER_RANGES))
			range[c->ranges++] = (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0};
		else if (p->span.kind[i] == SPAN_CALL && counters_is_launch(profile_str(p, p->span.name[i])))
			call[c->launches++] = (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0};
	}
	sort_items(range, c->ranges);
	sort_items(call, c->launches);
	const bool paired = c->ranges == c->launches;
	for (uint32_t i = 0; i < c->ranges; i++) {
		const uint32_t row = range[i].row, op = paired ? p->span.op[call[i].row] : ROW_NONE;
		if (!w->all && (!paired || !window_has(w, p->span.start_ns[call[i].row])))
			continue;
		const struct counters_of of = counters_around(c, p->span.name[row], op == ROW_NONE ? ROW_NONE : c->tree->node_of_span[op]);
		MEM_PUSH(c->v, c->n, c->cap, ((struct counters_kernel){.of = of, .set = p->span.args[row], .calls = 1, .start_ns = p->span.start_ns[row]}));
	}
	mem_free(range);
	mem_free(call);
}

/* Kernels that have the counters of Nsight Compute. Unless `each` has rows of its own, launches that share what was measured of one are one kernel of several calls. */
static void counters_add_work(struct counters *c, const struct window *w, bool each)
{
	const struct gpu_ops *g = &c->p->gpu_op;
	struct str told;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] != GPU_KERNEL || !profile_arg(c->p, g->args[i], ARG_COUNTERS, &told) || !window_has_gpu(w, c->p, i))
			continue;
		const struct counters_alike key = {counters_around(c, g->name[i], c->tree->gpu_node[i]), g->args[i]};
		const uint32_t before = c->alike.n, id = each ? 0 : intern_put(&c->alike, (const char *)&key, sizeof key);
		if (each || c->alike.n > before)
			MEM_PUSH(c->v, c->n, c->cap, ((struct counters_kernel){.of = key.of, .set = g->args[i], .calls = 1, .start_ns = g->start_ns[i], .told = told}));
		else
			c->v[id - 1].calls++;
	}
}

/* Kernels in which samples of the GPU lie. Samples of several calls together belong to the kernel, whichever ops launched the calls. */
static void counters_add_sampled(struct counters *c, const struct window *w)
{
	const struct gpu_ops *g = &c->p->gpu_op;
	struct sampled_values s;
	for (uint32_t i = 0; i < g->rows.n && sampled_any(c->p); i++) {
		if (g->kind[i] != GPU_KERNEL || !sampled_of(c->p, i, &s) || !window_has_gpu(w, c->p, i))
			continue;
		const struct counters_of of = s.call ? counters_around(c, g->name[i], c->tree->gpu_node[i]) : (struct counters_of){.name = g->name[i]};
		MEM_PUSH(c->v, c->n, c->cap, ((struct counters_kernel){.of = of, .set = g->args[i], .calls = 1, .first = s.first, .end = s.end, .start_ns = g->start_ns[i], .told = STR("samples"), .samples = s.samples, .ns = s.ns,
		                                                       .shared = !s.call}));
	}
}

/* Operations for each instruction that this counter counts; 0 = the metric is no counter of SASS arithmetic. Only threads whose predicate is on count. */
static double counters_flops_of(struct str metric)
{
	static const char *const ops[] = {"ffma", "fmul", "fadd", "hfma", "hmul", "hadd", "dfma", "dmul", "dadd"};
	if (!str_skip(&metric, STR("smsp__sass_thread_inst_executed_op_")))
		return 0;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		struct str rest = metric;
		if (str_skip(&rest, str_from(ops[i])) && str_eqc(rest, "_pred_on.sum"))
			return str_eqc((struct str){ops[i] + 1, 3}, "fma") ? 2 : 1;
	}
	return 0;
}

static struct str counters_metric(const struct profile *p, uint32_t metric) { return metric ? profile_str(p, metric) : STR("flops"); }

static void counters_put_of(struct table *out, const struct profile *p, const struct counters_of *of)
{
	table_set_str(out, COUNTERS_KERNEL, profile_str(p, of->name));
	if (of->op)
		table_set_str(out, COUNTERS_OPERATOR, profile_str(p, of->op));
	if (of->top)
		table_set_str(out, COUNTERS_TOP, profile_str(p, of->top));
}

static void counters_put_instance(struct table *out, const struct profile *p, const struct counters_kernel *k, uint32_t metric, double v)
{
	table_row(out);
	counters_put_of(out, p, &k->of);
	table_set_i64(out, COUNTERS_START, k->start_ns);
	table_set_str(out, COUNTERS_METRIC, counters_metric(p, metric));
	table_set_f64(out, COUNTERS_VALUE, v);
	table_set_str(out, COUNTERS_TOLD, k->told);
	if (k->samples)
		table_set_i64(out, COUNTERS_SAMPLES, k->samples);
}

static void counters_group(struct counters *c, const struct counters_kernel *k, uint32_t metric, double v)
{
	const struct counters_key key = {k->of, metric, k->shared ? COUNTERS_OF_NAME : k->samples ? COUNTERS_OF_CALLS : COUNTERS_COUNTED};
	const uint32_t before = c->keys.n, id = intern_put(&c->keys, (const char *)&key, sizeof key) - 1;
	if (c->keys.n > before)
		MEM_PUSH(c->row, c->n_rows, c->cap_rows, ((struct counters_row){.key = key, .min = INFINITY, .max = -INFINITY}));
	struct counters_row *x = &c->row[id];
	x->calls += k->calls;
	x->sum += v * (double)k->calls;
	x->min = fmin(x->min, v);
	x->max = fmax(x->max, v);
	x->weight += (double)k->ns;
	x->weighted += v * (double)k->ns;
	x->samples += (uint64_t)k->samples;
}

static void counters_put_groups(struct table *out, const struct counters *c)
{
	struct idmap units;
	counter_units_find(c->p, &units);
	for (uint32_t i = 0; i < c->n_rows; i++) {
		const struct counters_row *x = &c->row[i];
		const struct str metric = counters_metric(c->p, x->key.metric);
		const bool sampled = x->key.source != COUNTERS_COUNTED;
		if (x->key.source == COUNTERS_OF_NAME && x->samples < SAMPLED_NAME_LEAST)
			continue;
		table_row(out);
		counters_put_of(out, c->p, &x->key.of);
		table_set_str(out, COUNTERS_METRIC, metric);
		table_set_str(out, COUNTERS_UNIT, sampled ? sampled_unit(metric) : counter_unit(c->p, &units, x->key.metric));
		table_set_i64(out, COUNTERS_CALLS, (int64_t)x->calls);
		table_set_f64(out, COUNTERS_SUM, sampled ? NAN : x->sum);
		table_set_f64(out, COUNTERS_MEAN, sampled ? x->weighted / x->weight : x->sum / (double)x->calls);
		if (sampled)
			table_set_i64(out, COUNTERS_SAMPLES, (int64_t)x->samples);
		table_set_f64(out, COUNTERS_MIN, x->min);
		table_set_f64(out, COUNTERS_MAX, x->max);
	}
	idmap_release(&units);
}

/* A launch of its own (`each`) has the samples of this call alone: a mean over several calls is the mean of none of them. */
static void counters_put_samples(struct counters *c, const struct counters_kernel *k, bool each, struct table *out)
{
	for (uint32_t a = k->first; a < k->end; a++) {
		const double v = sampled_value(c->p, a);
		if (isnan(v) || (each && k->shared))
			continue;
		if (each)
			counters_put_instance(out, c->p, k, c->p->arg.key[a], v);
		else
			counters_group(c, k, c->p->arg.key[a], v);
	}
}

static void counters_put_kernel(struct counters *c, const struct counters_kernel *k, bool each, struct table *out)
{
	const struct profile *p = c->p;
	const uint32_t end = k->set + 1 < p->arg_set.rows.n ? p->arg_set.first[k->set + 1] : p->arg.rows.n;
	double flops = 0;
	bool counts = false, all = false; /* all: behind ARG_COUNTERS labels of ncu's details page are counters, too */
	for (uint32_t a = k->set ? p->arg_set.first[k->set] : end; a < end; a++) {
		if (k->told.n && !all) {
			all = profile_is_arg(p, p->arg.key[a], ARG_COUNTERS);
			continue;
		}
		const double v = (all ? counter_number : counter_value)(p, a), of_one = counters_flops_of(profile_str(p, p->arg.key[a]));
		if (isnan(v))
			continue;
		if (each)
			counters_put_instance(out, p, k, p->arg.key[a], v);
		else
			counters_group(c, k, p->arg.key[a], v);
		flops += of_one * v;
		counts |= of_one > 0;
	}
	if (counts && each)
		counters_put_instance(out, p, k, 0, flops);
	else if (counts)
		counters_group(c, k, 0, flops);
}

static void counters_put(struct counters *c, const struct report_args *args, struct table *out)
{
	section_start(&counters_section, args, sampled_any(c->p) ? WHEN_SAMPLES : 0, out);
	for (uint32_t i = 0; i < c->n; i++)
		(c->v[i].samples ? counters_put_samples : counters_put_kernel)(c, &c->v[i], args->variant->by == COUNTERS_BY_INSTANCE, out);
	counters_put_groups(out, c);
	if (c->ranges && c->ranges != c->launches)
		table_warn(out, "the ops are unknown: CUPTI measured %u kernels and the recording has %u launches, so that their order does not tell which belong together", c->ranges, c->launches);
	if (c->ranges)
		table_note(out, "kernels that CUPTI measured: %u. To be counted, they ran one by one, and maybe several times each: a run without counters takes other times", c->ranges);
}

static int counters_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct counters c = {.p = p};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	c.tree = optree_new(p, &optree_own);
	intern_init(&c.alike);
	intern_init(&c.keys);
	counters_add_work(&c, &w, args->variant->by == COUNTERS_BY_INSTANCE);
	counters_add_ranges(&c, &w);
	counters_add_sampled(&c, &w);
	if (c.n)
		counters_put(&c, args, out);
	intern_release(&c.alike);
	intern_release(&c.keys);
	mem_free(c.row);
	mem_free(c.v);
	optree_free(c.tree);
	if (c.n)
		return 0;
	return !w.all ? err_set(e, ERR_DATA, "no kernel in the steps asked for has hardware counters") :
	       err_set(e, ERR_DATA, "the input holds no hardware counters of kernels. --counters=FILE adds what ncu --csv --page raw measured in another run; torch.profiler records counters with "
	               "experimental_config=_ExperimentalConfig(profiler_metrics=[...], profiler_measure_per_kernel=True)");
}

static const struct report_variant counters_variants[] = {
	{.group_by = "name", .by = COUNTERS_BY_NAME},
	{.group_by = "instance", .by = COUNTERS_BY_INSTANCE},
	{0},
};

const struct report report_counters = {
	.name = "counters",
	.title = "Hardware counters of kernels",
	.asks = ASKS_FASTER,
	.also = "ncu cupti hardware_counters metrics cuda_profiler_range",
	.help = "What Nsight Compute (--counters=FILE) or CUPTI's range profiler (torch.profiler's profiler_metrics) measured of each kernel, and what Nsight Systems sampled of the GPU (--gpu-metrics-devices) while the kernel ran alone. A row is a kernel, the op that launched it, and a metric, "
	        "in base units (byte, ns, inst). Counters of SASS instructions are also summed to FLOPs: operations that were executed, not those of a formula, and without Tensor Cores'. --group-by=instance has each launch.",
	.variants = counters_variants,
	.sections = (const struct section *const[]){&counters_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = counters_run,
};
