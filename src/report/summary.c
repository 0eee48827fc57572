/* The run in a few tables: what the time was used for, its steps, its ops and kernels by their use of Tensor Cores, the machine. */
#include <math.h>
#include <sys/param.h>

#include "analysis/ranks/rank_place.h"
#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/predecessor.h"
#include "query/summary_sums.h"
#include "report/parts/system_facts.h"

/* The time that the numbers are about: the whole steps that were asked for, or the window that stands in for them. */
struct span_of_time {
	const struct step **step;  /* n steps; n = 0: there are no steps, and times are of the window */
	int64_t *start_ns, *end_ns; /* disjoint times: device work of a step may reach into the next step */
	unsigned n;
	struct usage use;          /* added up */
	struct window w;
};

static void add_usage(struct usage *sum, const struct usage *u)
{
	for (int k = 0; k < USAGES; k++)
		sum->ns[k] += u->ns[k];
	sum->kernel_busy_ns += u->kernel_busy_ns;
	sum->device_busy_ns += u->device_busy_ns;
	sum->window_ns += u->window_ns;
	sum->gpus = u->gpus;
}

static void summary_choose_steps(const struct profile *p, const struct report_args *args, struct span_of_time *x)
{
	const struct steps *s = p->steps;
	int64_t end = INT64_MIN;
	x->step = NEW_ARRAY(s->n, const struct step *);
	x->start_ns = NEW_ARRAY((size_t)s->n + 1, int64_t);
	x->end_ns = NEW_ARRAY((size_t)s->n + 1, int64_t);
	for (unsigned i = 0; i < s->n && !s->whole_trace; i++) {
		const struct step *v = &s->v[i];
		if (args->has_steps && (v->number < args->step_first || v->number > args->step_last))
			continue;
		x->start_ns[x->n] = MAX(v->start_ns, end);
		x->end_ns[x->n] = end = MAX(v->end_ns, x->start_ns[x->n]);
		x->step[x->n++] = v;
	}
}

static int summary_measure(const struct profile *p, const struct report_args *args, struct span_of_time *x, struct err *e)
{
	struct report_args whole_steps = *args;
	summary_choose_steps(p, args, x);
	if (x->n && !args->has_steps) {
		whole_steps.has_steps = true;
		whole_steps.step_first = INT64_MIN;
		whole_steps.step_last = INT64_MAX;
	}
	if (window_of(p, &whole_steps, &x->w, e) < 0)
		return -1;
	unsigned n = x->n ? x->n : 1;
	if (!x->n && !p->steps->n)
		return err_set(e, ERR_DATA, "the input holds no events with a time");
	if (!x->n) {
		x->start_ns[0] = p->steps->v[0].start_ns;
		x->end_ns[0] = p->steps->v[0].end_ns;
	}
	struct usage *u = NEW_ARRAY(n, struct usage);
	usage_measure_all(p, x->start_ns, x->end_ns, n, NULL, u);
	for (unsigned i = 0; i < n; i++)
		add_usage(&x->use, &u[i]);
	mem_free(u);
	return 0;
}

static void summary_release(struct span_of_time *x)
{
	mem_free(x->step);
	mem_free(x->start_ns);
	mem_free(x->end_ns);
}

int summary_usage(const struct profile *p, const struct report_args *args, struct usage *out, struct err *e)
{
	struct span_of_time x = {0};
	int rc = summary_measure(p, args, &x, e);
	*out = x.use;
	summary_release(&x);
	return rc;
}

enum { SUMMARY_USE_NAME, SUMMARY_USE_MEAN, SUMMARY_USE_TOTAL, SUMMARY_USE_SHARE, SUMMARY_USE_WHAT };

static const struct section summary_use_section = {COLUMNS(
	[SUMMARY_USE_NAME] = {COLUMN(TEXT, "use", "Use", "what the time was used for: the first of the list that was active")},
	[SUMMARY_USE_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean per step", "mean over the steps; empty without steps")},
	[SUMMARY_USE_TOTAL] = {COLUMN(MEAN_NS, "total_ns", "Total", "time in all steps; of several GPUs the average over those that did something", .flags = COLUMN_ANSWER)},
	[SUMMARY_USE_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of the time of these steps", .flags = COLUMN_ANSWER)},
	[SUMMARY_USE_WHAT] = {COLUMN(TEXT, "what", "What It Is", "what the row holds", .flags = COLUMN_DETAIL)},
)};

static void usage_table(const struct profile *p, const struct span_of_time *x, struct table *t)
{
	static const struct { const char *title, *help; } row[USAGES] = {
		[USAGE_TC] = {"Tensor Core kernels", "kernels that use Tensor Cores"},
		[USAGE_KERNEL] = {"other kernels", "else kernels that do not"},
		[USAGE_UNKNOWN] = {"kernels, unknown", "else kernels whose name does not tell whether they use Tensor Cores"},
		[USAGE_MEMORY] = {"copies and sets", "else copies and sets of memory"},
		[USAGE_DATALOADER] = {"data loader", "else the data loader made a batch"},
		[USAGE_IO] = {"file I/O", "else a file was read or written, where OS calls were recorded"},
		[USAGE_CPU] = {"CPU", "else an op, a range of yours or an API call went on on the host: Runtime, CPU Exec and the host's Communication of `steps`"},
		[USAGE_OTHER] = {"other", "nothing of these was recorded"},
	};
	int64_t first, last;
	for (int k = 0; k < USAGES; k++) {
		table_row(t);
		table_set_str(t, SUMMARY_USE_NAME, str_from(row[k].title));
		table_set_f64(t, SUMMARY_USE_MEAN, x->n ? x->use.ns[k] / x->n : NAN);
		table_set_f64(t, SUMMARY_USE_TOTAL, x->use.ns[k]);
		table_set_f64(t, SUMMARY_USE_SHARE, percent(x->use.ns[k], (double)x->use.window_ns));
		table_set_str(t, SUMMARY_USE_WHAT, str_from(row[k].help));
	}
	int64_t recorded = recording_extent(p, &first, &last) ? last - first : 0;
	if (x->n)
		table_note(t, "Uses sum to %lld ns, the length of %u step%s; %lld ns were recorded.", (long long)x->use.window_ns, x->n,
		           x->n == 1 ? "" : "s", (long long)recorded);
	else
		table_note(t, "Uses sum to %lld ns; %lld ns were recorded.", (long long)x->use.window_ns, (long long)recorded);
	if (!x->n)
		table_warn(t, STR_FMT, STR_ARG(p->steps->how));
	if (x->use.gpus > 1)
		table_note(t, "Of %u GPUs: averages.", x->use.gpus);
}

enum { SUMMARY_FIGURE_WALL, SUMMARY_FIGURE_GPUS, SUMMARY_FIGURE_BUSY, SUMMARY_FIGURE_KERNELS, SUMMARY_FIGURE_TC, SUMMARY_FIGURE_UNKNOWN };

static const struct section summary_figure_section = {.name = "figures", .title = "Key figures", COLUMNS(
	[SUMMARY_FIGURE_WALL] = {COLUMN(NS, "wall_ns", "Wall clock", "length of the steps, or of the window that stands for them")},
	[SUMMARY_FIGURE_GPUS] = {COLUMN(COUNT, "gpus", "GPUs", "that did something")},
	[SUMMARY_FIGURE_BUSY] = {COLUMN(PERCENT, "gpu_busy_pct", "GPU busy", "time with a kernel, copy or set", .flags = COLUMN_PROSE)},
	[SUMMARY_FIGURE_KERNELS] = {COLUMN(PERCENT, "kernel_busy_pct", "with a kernel", "time with a kernel", .flags = COLUMN_PROSE)},
	[SUMMARY_FIGURE_TC] = {COLUMN(PERCENT, "tc_pct", "Tensor Cores, of what could", "part of the time of kernels that could use Tensor Cores (report "
	                                                                                "tensor-cores) in kernels that do", .flags = COLUMN_PROSE)},
	[SUMMARY_FIGURE_UNKNOWN] = {COLUMN(PERCENT, "tc_unknown_pct", "unknown, of what could", "part of this time in kernels whose name does not tell", .flags = COLUMN_PROSE)},
)};

static void figures_table(const struct span_of_time *x, const struct summary_sums *s, struct table *t)
{
	table_row(t);
	table_set_i64(t, SUMMARY_FIGURE_WALL, x->use.window_ns);
	table_set_i64(t, SUMMARY_FIGURE_GPUS, x->use.gpus);
	if (x->use.gpus) {
		table_set_f64(t, SUMMARY_FIGURE_BUSY, percent(x->use.device_busy_ns, (double)x->use.window_ns));
		table_set_f64(t, SUMMARY_FIGURE_KERNELS, percent(x->use.kernel_busy_ns, (double)x->use.window_ns));
	}
	table_set_f64(t, SUMMARY_FIGURE_TC, percent((double)s->tc_ns, (double)s->kernel_ns));
	table_set_f64(t, SUMMARY_FIGURE_UNKNOWN, percent((double)s->unknown_ns, (double)s->kernel_ns));
}

enum {
	SUMMARY_STEPS_FOUND, SUMMARY_STEPS_COUNTED, SUMMARY_STEPS_PARTIAL, SUMMARY_STEPS_FIRST, SUMMARY_STEPS_LAST, SUMMARY_STEPS_MEAN, SUMMARY_STEPS_HOST,
	SUMMARY_STEPS_DEVIATION, SUMMARY_STEPS_MIN, SUMMARY_STEPS_MAX, SUMMARY_STEPS_SOURCE, SUMMARY_STEPS_KEY
};

static const struct section summary_steps_section = {.name = "steps", .title = "Steps", COLUMNS(
	[SUMMARY_STEPS_FOUND] = {COLUMN(COUNT, "found", "Found", "steps of the recording")},
	[SUMMARY_STEPS_COUNTED] = {COLUMN(COUNT, "counted", "Counted", "that these tables cover")},
	[SUMMARY_STEPS_PARTIAL] = {COLUMN(COUNT, "partial", "Left out", "not whole: before the first and after the last border, not recorded to their ends, or without "
	                                  "all their device work")},
	[SUMMARY_STEPS_FIRST] = {COLUMN(NUMBER, "first", "First", "number of the first that counts")},
	[SUMMARY_STEPS_LAST] = {COLUMN(NUMBER, "last", "Last", "number of the last")},
	[SUMMARY_STEPS_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "mean length, its device work included, as in `steps` and `overview`", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_HOST] = {COLUMN(MEAN_NS, "host_mean_ns", "Mean on the host", "mean length of the annotation, or from border to border", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_DEVIATION] = {COLUMN(MEAN_NS, "stddev_ns", "Std dev", "standard deviation of that length as a sample (n - 1); 0 of one", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_MIN] = {COLUMN(NS, "min_ns", "Shortest", "least such length", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_MAX] = {COLUMN(NS, "max_ns", "Longest", "greatest such length", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_SOURCE] = {COLUMN(TEXT, "source", "From", "what marks them", .flags = COLUMN_PROSE)},
	[SUMMARY_STEPS_KEY] = {COLUMN(TEXT, "key", "Key", "the op or range that makes them", .flags = COLUMN_PROSE)},
)};

static void steps_table(const struct profile *p, const struct span_of_time *x, struct table *t)
{
	const struct steps *s = p->steps;
	double sum = 0, host = 0, squares = 0;
	int64_t least = INT64_MAX, most = 0;
	table_row(t);
	table_set_i64(t, SUMMARY_STEPS_FOUND, s->whole_trace ? 0 : s->total);
	table_set_i64(t, SUMMARY_STEPS_COUNTED, x->n);
	table_set_i64(t, SUMMARY_STEPS_PARTIAL, s->whole_trace ? 0 : s->edges + s->total - s->n);
	table_set_str(t, SUMMARY_STEPS_SOURCE, str_from(step_source_name[s->source]));
	if (s->key.n)
		table_set_str(t, SUMMARY_STEPS_KEY, s->key);
	if (!x->n)
		return;
	for (unsigned i = 0; i < x->n; i++) {
		int64_t length = x->step[i]->end_ns - x->step[i]->start_ns;
		sum += (double)length;
		host += (double)(x->step[i]->host_end_ns - x->step[i]->host_start_ns);
		least = MIN(least, length);
		most = MAX(most, length);
	}
	for (unsigned i = 0; i < x->n; i++) {
		double d = (double)(x->step[i]->end_ns - x->step[i]->start_ns) - sum / x->n;
		squares += d * d;
	}
	table_set_i64(t, SUMMARY_STEPS_FIRST, x->step[0]->number);
	table_set_i64(t, SUMMARY_STEPS_LAST, x->step[x->n - 1]->number);
	table_set_f64(t, SUMMARY_STEPS_MEAN, sum / x->n);
	table_set_f64(t, SUMMARY_STEPS_HOST, host / x->n);
	table_set_f64(t, SUMMARY_STEPS_DEVIATION, x->n < 2 ? 0 : sqrt(squares / (x->n - 1)));
	table_set_i64(t, SUMMARY_STEPS_MIN, least);
	table_set_i64(t, SUMMARY_STEPS_MAX, most);
}

enum { SUMMARY_OPS_NAME, SUMMARY_OPS_GPU, SUMMARY_OPS_HOST, SUMMARY_OPS_DIFFERENT, SUMMARY_OPS_CALLS };

static const struct section summary_ops_section = {.name = "ops", .title = "Ops by Tensor Cores", COLUMNS(
	[SUMMARY_OPS_NAME] = {COLUMN(TEXT, "ops", "Ops", "by whether any of their kernels uses Tensor Cores")},
	[SUMMARY_OPS_GPU] = {COLUMN(NS, "gpu_ns", "GPU", "union of their device work, of each GPU by itself, added up; of ops that use or could use Tensor Cores only of "
	                            "kernels that could: what else they ran is with all others")},
	[SUMMARY_OPS_HOST] = {COLUMN(NS, "cpu_ns", "Host", "union of their ranges on the host, over all threads")},
	[SUMMARY_OPS_DIFFERENT] = {COLUMN(COUNT, "n_ops", "Different", "how many ops; calls outside all ops are ops, too")},
	[SUMMARY_OPS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often they were called")},
)};

static void summary_ops_table(const struct summary_sums *s, struct table *t)
{
	static const struct { enum tc_use use; const char *title; } rows[] = {
		{TC_USING, "use Tensor Cores"}, {TC_ELIGIBLE, "could, but do not"}, {TC_UNKNOWN, "could, unknown"}, {TC_OTHER, "all others"},
		{TC_ALL, "all"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct op_use *u = &s->op[rows[i].use];
		table_row(t);
		table_set_str(t, SUMMARY_OPS_NAME, str_from(rows[i].title));
		table_set_i64(t, SUMMARY_OPS_GPU, u->gpu_ns);
		table_set_i64(t, SUMMARY_OPS_HOST, u->cpu_ns);
		table_set_i64(t, SUMMARY_OPS_DIFFERENT, u->ops);
		table_set_i64(t, SUMMARY_OPS_CALLS, (int64_t)u->calls);
	}
	table_note(t, "Unions: where ops overlap, the rows add up to more than the last.");
}

enum { SUMMARY_KERNELS_NAME, SUMMARY_KERNELS_GPU, SUMMARY_KERNELS_API, SUMMARY_KERNELS_DIFFERENT, SUMMARY_KERNELS_CALLS };

static const struct section summary_kernels_section = {.name = "kernels", .title = "Kernels by Tensor Cores", COLUMNS(
	[SUMMARY_KERNELS_NAME] = {COLUMN(TEXT, "kernels", "Kernels", "by whether they use Tensor Cores, by their name")},
	[SUMMARY_KERNELS_GPU] = {COLUMN(NS, "gpu_ns", "GPU", "sum of their durations")},
	[SUMMARY_KERNELS_API] = {COLUMN(NS, "api_ns", "Launching", "sum of the durations of the API calls that launched them")},
	[SUMMARY_KERNELS_DIFFERENT] = {COLUMN(COUNT, "names", "Different", "names of kernels; of copies and sets the names of the API calls")},
	[SUMMARY_KERNELS_CALLS] = {COLUMN(COUNT, "calls", "Launches", "how often they ran")},
)};

static void kernels_table(const struct summary_sums *s, struct table *t)
{
	static const struct { enum tc_use use; const char *title; } rows[] = {
		{TC_USING, "use Tensor Cores"}, {TC_OTHER, "do not"}, {TC_UNKNOWN, "unknown"}, {TC_MEMORY, "copies and sets"}, {TC_ALL, "all"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct kernel_use *u = &s->kernel[rows[i].use];
		table_row(t);
		table_set_str(t, SUMMARY_KERNELS_NAME, str_from(rows[i].title));
		table_set_i64(t, SUMMARY_KERNELS_GPU, u->gpu_ns);
		table_set_i64(t, SUMMARY_KERNELS_API, u->api_ns);
		table_set_i64(t, SUMMARY_KERNELS_DIFFERENT, u->names);
		table_set_i64(t, SUMMARY_KERNELS_CALLS, (int64_t)u->calls);
	}
	table_note(t, "device work %lld ns = launched by a recorded call %lld + by none %lld (each kernel, copy and set by itself)",
	           (long long)s->kernel[TC_ALL].gpu_ns, (long long)(s->kernel[TC_ALL].gpu_ns - s->unlaunched_ns), (long long)s->unlaunched_ns);
}

enum { SUMMARY_SYSTEM_ID, SUMMARY_SYSTEM_NAME, SUMMARY_SYSTEM_VALUE };

static const struct section summary_system_section = {.name = "system", .title = "System", COLUMNS(
	[SUMMARY_SYSTEM_ID] = {COLUMN(TEXT, "id", "Id", "what, as a word", .flags = COLUMN_DETAIL)},
	[SUMMARY_SYSTEM_NAME] = {COLUMN(TEXT, "name", "System", "what")},
	[SUMMARY_SYSTEM_VALUE] = {COLUMN(TEXT, "value", "Value", "as recorded; what was not recorded has no row", .flags = COLUMN_WIDE)},
)};

static void summary_put_fact(struct table *t, const char *id, const char *title, struct str value)
{
	if (!value.n)
		return;
	table_row(t);
	table_set_str(t, SUMMARY_SYSTEM_ID, str_from(id));
	table_set_str(t, SUMMARY_SYSTEM_NAME, str_from(title));
	table_set_str(t, SUMMARY_SYSTEM_VALUE, value);
}

static void system_table(const struct profile *p, struct table *t)
{
	for (int f = 0; f < SYSTEM_FACTS; f++)
		summary_put_fact(t, system_fact_row[f].id, system_fact_row[f].title, system_fact(p, system_fact_row[f].fact, &t->arena));
	for (const struct predecessor *const *by = predecessor_registry; *by; by++)
		for (const struct predecessor_fact *f = (*by)->facts; f && f->id; f++)
			summary_put_fact(t, f->id, f->title, system_text(p, f->key));
	struct str driver = system_fact(p, FACT_CUDA, &t->arena), runtime = system_fact(p, FACT_CUDA_RUNTIME, &t->arena);
	if (driver.n && runtime.n && !str_eq(driver, runtime))
		table_note(t, "CUDA: the program ran with the runtime's version; the driver's is the newest that it supports.");
	struct buf b = {0};
	rank_put_foreign_gpus(p, &b);
	if (b.n)
		table_note(t, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

static int summary_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	if (op_check(p, e) < 0)
		return -1;
	struct span_of_time x = {0};
	struct summary_sums sums;
	int rc = summary_measure(p, args, &x, e);
	if (rc == 0) {
		summary_sum(p, &x.w, NULL, &sums);
		section_start(&summary_use_section, args, 0, t);
		usage_table(p, &x, t);
		figures_table(&x, &sums, section_add(&summary_figure_section, args, 0, t));
		steps_table(p, &x, section_add(&summary_steps_section, args, 0, t));
		summary_ops_table(&sums, section_add(&summary_ops_section, args, 0, t));
		kernels_table(&sums, section_add(&summary_kernels_section, args, 0, t));
		system_table(p, section_add(&summary_system_section, args, 0, t));
	}
	summary_release(&x);
	return rc;
}

const struct report report_summary = {
	.name = "summary",
	.title = "What the time was used for",
	.also = "total totals",
	.help = "The run in a few tables. First, what each moment of the steps was used for: Tensor Core kernels, other kernels, copies, the data "
	        "loader, file I/O, the CPU; each nanosecond goes to the first that was active, so that later rows are time in which the GPU had "
	        "nothing to do. Then the steps, ops and kernels by their use of Tensor Cores, and the machine. Only whole steps count; without "
	        "steps, the whole recording.",
	.sections = (const struct section *const[]){&summary_use_section, &summary_figure_section, &summary_steps_section, &summary_ops_section, &summary_kernels_section,
	                                            &summary_system_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS | PASS_OPS,
	.takes = REPORT_STEPS,
	.run = summary_run,
};
