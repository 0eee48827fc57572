/* Hardware counters that the profiler read around each kernel (Kineto's cuda_profiler_range events), with the op that launched the kernel. Such recordings run kernels one by
 * one and have no kernel events: a range has no correlation id, but the k-th is of the k-th launch, if there are as many of both. */
#include "analysis/analysis.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "io/json.h"
#include "query/report.h"

#include <math.h>

enum counters_by { COUNTERS_BY_KERNEL, COUNTERS_BY_INSTANCE };

enum { COUNTERS_NAME, COUNTERS_OP, COUNTERS_TOP, COUNTERS_COUNTER, COUNTERS_N, COUNTERS_SUM, COUNTERS_MEAN, COUNTERS_MIN, COUNTERS_MAX };

static const struct section counters_section = {.by = BY(COUNTERS_BY_KERNEL), COLUMNS(
	[COUNTERS_NAME] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	[COUNTERS_OP] = {COLUMN(TEXT, "operator", "Operator", "the innermost op around its launch; empty = not known, or none", .flags = COLUMN_GROUP | COLUMN_ANSWER)},
	[COUNTERS_TOP] = {COLUMN(TEXT, "top_operator", "Outermost Op", "the outermost op around its launch", .flags = COLUMN_MINOR)},
	[COUNTERS_COUNTER] = {COLUMN(TEXT, "counter", "Counter", "as CUPTI calls it; flops: what the counters of SASS instructions come to, a fused multiply-add being 2", .flags = COLUMN_ANSWER)},
	[COUNTERS_N] = {COLUMN(COUNT, "launches", "Launches", "for how many it was read")},
	[COUNTERS_SUM] = {COLUMN(REAL, "sum", "Sum", "of all launches; of counters that are shares or rates it means nothing", .digits = 0, .flags = COLUMN_ANSWER)},
	[COUNTERS_MEAN] = {COLUMN(REAL, "mean", "Mean", "of a launch", .digits = 2, .flags = COLUMN_ANSWER)},
	[COUNTERS_MIN] = {COLUMN(REAL, "min", "Min", "least of a launch", .digits = 2, .flags = COLUMN_MINOR)},
	[COUNTERS_MAX] = {COLUMN(REAL, "max", "Max", "most of a launch", .digits = 2, .flags = COLUMN_MINOR)},
)};

enum { COUNTER_START, COUNTER_NAME, COUNTER_OP, COUNTER_TOP, COUNTER_COUNTER, COUNTER_VALUE };

static const struct section counter_section = {.by = BY(COUNTERS_BY_INSTANCE), COLUMNS(
	[COUNTER_START] = {COLUMN(TIME, "start_ns", "Start", "of the range around the kernel")},
	[COUNTER_NAME] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	[COUNTER_OP] = {COLUMN(TEXT, "operator", "Operator", "the innermost op around its launch; empty = not known, or none", .flags = COLUMN_GROUP)},
	[COUNTER_TOP] = {COLUMN(TEXT, "top_operator", "Outermost Op", "the outermost op around its launch", .flags = COLUMN_MINOR)},
	[COUNTER_COUNTER] = {COLUMN(TEXT, "counter", "Counter", "as CUPTI calls it, or flops", .flags = COLUMN_ANSWER)},
	[COUNTER_VALUE] = {COLUMN(REAL, "value", "Value", "what was read", .digits = 2, .flags = COLUMN_ANSWER)},
)};

struct counter_key {
	uint32_t name, op, top, counter; /* string ids; op, top: 0 = none. counter 0: flops */
};

struct counter_row {
	struct counter_key key;
	uint64_t n;
	double sum, min, max;
};

struct counters {
	const struct profile *p;
	struct sort_item *range, *launch; /* in order of start */
	uint32_t n_ranges, n_launches;
	uint32_t *top;                    /* op (row of span) -> the outermost op around it, or itself */
	struct intern keys;
	struct counter_row *v;
	uint32_t n, cap;
	struct table *each;               /* by instance: its rows; NULL */
};

static bool is_range(const struct profile *p, uint32_t span)
{
	return p->span.kind[span] == SPAN_OTHER && str_eqc(profile_cat(p, p->span.cat[span]), "cuda_profiler_range");
}

static bool is_launch(const struct profile *p, uint32_t span)
{
	struct str name = profile_str(p, p->span.name[span]);
	return p->span.kind[span] == SPAN_CALL && (str_starts(name, STR("cudaLaunchKernel")) || str_starts(name, STR("cuLaunchKernel")));
}

static void counters_find(struct counters *x)
{
	const struct spans *s = &x->p->span;
	x->range = NEW_ARRAY_RAW(s->rows.n, struct sort_item);
	x->launch = NEW_ARRAY_RAW(s->rows.n, struct sort_item);
	x->top = NEW_ARRAY_RAW(s->rows.n, uint32_t);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		bool inside = s->kind[i] == SPAN_OP && s->op[i] != ROW_NONE && s->op[i] < i; /* what is around stands before */
		x->top[i] = inside ? x->top[s->op[i]] : i;
		if (is_range(x->p, i))
			x->range[x->n_ranges++] = (struct sort_item){sort_key_i64(s->start_ns[i]), i, 0};
		else if (is_launch(x->p, i))
			x->launch[x->n_launches++] = (struct sort_item){sort_key_i64(s->start_ns[i]), i, 0};
	}
	sort_items(x->range, x->n_ranges);
	sort_items(x->launch, x->n_launches);
}

/* Operations of an instruction of this counter, on all threads whose predicate is on; 0 = it counts no arithmetic. */
static double flops_of_instruction(struct str counter)
{
	static const char *const ops[] = {"ffma", "fmul", "fadd", "hfma", "hmul", "hadd", "dfma", "dmul", "dadd"};
	static const struct str before = {"smsp__sass_thread_inst_executed_op_", sizeof "smsp__sass_thread_inst_executed_op_" - 1};
	if (!str_starts(counter, before))
		return 0;
	counter.p += before.n;
	counter.n -= before.n;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (str_starts(counter, str_from(ops[i])) && str_eqc((struct str){counter.p + 4, counter.n - 4}, "_pred_on.sum"))
			return str_eqc((struct str){ops[i] + 1, 3}, "fma") ? 2 : 1;
	return 0;
}

static void counters_add(struct counters *x, const struct counter_key *k, double value, int64_t start)
{
	if (x->each) {
		table_row(x->each);
		table_set_i64(x->each, COUNTER_START, start);
		table_set_str(x->each, COUNTER_NAME, profile_str(x->p, k->name));
		if (k->op)
			table_set_str(x->each, COUNTER_OP, profile_str(x->p, k->op));
		if (k->top)
			table_set_str(x->each, COUNTER_TOP, profile_str(x->p, k->top));
		table_set_str(x->each, COUNTER_COUNTER, k->counter ? profile_str(x->p, k->counter) : STR("flops"));
		table_set_f64(x->each, COUNTER_VALUE, value);
		return;
	}
	uint32_t before = x->keys.n, at = intern_put(&x->keys, (const char *)k, sizeof *k) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, (struct counter_row){.key = *k, .min = INFINITY, .max = -INFINITY});
	struct counter_row *row = &x->v[at];
	row->n++;
	row->sum += value;
	row->min = fmin(row->min, value);
	row->max = fmax(row->max, value);
}

/* Counters are the arguments with two underscores: unit__what.how. */
static void counters_add_range(struct counters *x, uint32_t range, uint32_t launch)
{
	const struct profile *p = x->p;
	uint32_t set = p->span.args[range], end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	struct counter_key k = {.name = p->span.name[range]};
	double flops = 0;
	bool counts = false;
	if (!set)
		return;
	if (launch != ROW_NONE && p->span.op[launch] != ROW_NONE) {
		k.op = p->span.name[p->span.op[launch]];
		k.top = p->span.name[x->top[p->span.op[launch]]];
	}
	for (uint32_t i = p->arg_set.first[set]; i < end; i++) {
		struct str key = profile_str(p, p->arg.key[i]);
		double v, each = flops_of_instruction(key);
		if (str_find(key, STR("__")) < 0 || !json_to_f64(profile_str(p, p->arg.value[i]), &v) || !isfinite(v))
			continue;
		k.counter = p->arg.key[i];
		counters_add(x, &k, v, p->span.start_ns[range]);
		flops += each * v;
		counts |= each > 0;
	}
	k.counter = 0;
	if (counts)
		counters_add(x, &k, flops, p->span.start_ns[range]);
}

static void counters_put(const struct counters *x, struct table *t)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const struct counter_row *r = &x->v[i];
		table_row(t);
		table_set_str(t, COUNTERS_NAME, profile_str(x->p, r->key.name));
		if (r->key.op)
			table_set_str(t, COUNTERS_OP, profile_str(x->p, r->key.op));
		if (r->key.top)
			table_set_str(t, COUNTERS_TOP, profile_str(x->p, r->key.top));
		table_set_str(t, COUNTERS_COUNTER, r->key.counter ? profile_str(x->p, r->key.counter) : STR("flops"));
		table_set_i64(t, COUNTERS_N, (int64_t)r->n);
		table_set_f64(t, COUNTERS_SUM, r->sum);
		table_set_f64(t, COUNTERS_MEAN, r->sum / (double)r->n);
		table_set_f64(t, COUNTERS_MIN, r->min);
		table_set_f64(t, COUNTERS_MAX, r->max);
	}
}

static int counters_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct counters x = {.p = p};
	bool each = args->variant->by == COUNTERS_BY_INSTANCE;
	int rc = 0;
	counters_find(&x);
	intern_init(&x.keys);
	if (!x.n_ranges) {
		rc = err_set(e, ERR_DATA, "the input holds no hardware counters of kernels (cuda_profiler_range); to record them with torch.profiler: "
		                          "experimental_config=_ExperimentalConfig(profiler_metrics=[...], profiler_measure_per_kernel=True)");
	} else {
		bool paired = x.n_ranges == x.n_launches;
		section_start(each ? &counter_section : &counters_section, args, 0, out);
		x.each = each ? out : NULL;
		for (uint32_t i = 0; i < x.n_ranges; i++)
			counters_add_range(&x, x.range[i].row, paired ? x.launch[i].row : ROW_NONE);
		counters_put(&x, out);
		if (!paired)
			table_warn(out, "the ops are unknown: of %u kernels with counters and %u launches, it cannot be told which belong together", x.n_ranges, x.n_launches);
		table_note(out, "kernels with counters: %u. They ran one by one, maybe several times each, to be counted: their times are not those of a run without", x.n_ranges);
		if (!each)
			rc = table_sort(out, STR("sum"), true, e);
	}
	intern_release(&x.keys);
	mem_free(x.v);
	mem_free(x.range);
	mem_free(x.top);
	mem_free(x.launch);
	return rc;
}

static const struct report_variant counters_variants[] = {
	{.group_by = "kernel", .by = COUNTERS_BY_KERNEL},
	{.group_by = "instance", .by = COUNTERS_BY_INSTANCE},
	{0},
};

const struct report report_counters = {
	.name = "counters",
	.title = "Hardware counters by kernel",
	.asks = ASKS_FASTER,
	.also = "cupti hardware_counters metrics cuda_profiler_range",
	.help = "What CUPTI counted while each kernel ran, by kernel, the op that launched it and counter: instructions, bytes, whatever was asked for with profiler_metrics. Of counters of "
	        "SASS instructions the FLOPs, which are those that were executed, not those that a formula says. Tensor Cores' are not among them. --group-by=instance has each launch.",
	.variants = counters_variants,
	.sections = (const struct section *const[]){&counters_section, &counter_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = counters_run,
};
