/* One aggregation in a database of DLProf: the rows of its reports. */
#include "predecessors/dlprof/dldb_write.h"

#include <assert.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/time/interval.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "predecessors/dlprof/experts/experts.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"
#include "query/summary_sums.h"

/* --- metrics ---------------------------------------------------------------------------------------------------- */

struct stat4 {
	int64_t n, sum, min, max;
};

static void stat4_add(struct stat4 *s, int64_t v)
{
	s->min = !s->n || v < s->min ? v : s->min;
	s->max = !s->n || v > s->max ? v : s->max;
	s->sum += v;
	s->n++;
}

static int64_t put_metric(struct dldb_work *w, const struct stat4 *s)
{
	return dldb_file_put(&w->f, DLDB_metric, "innif", s->n, s->max, s->min, s->sum, s->n ? (double)s->sum / (double)s->n : 0.0);
}

/* Of a report's row: total, mean, least and most, from column `first` on. */
static struct stat4 stat4_of(const struct table *t, size_t row, unsigned first, int64_t n)
{
	return (struct stat4){n, table_i64(t, row, first), table_i64(t, row, first + 2), table_i64(t, row, first + 3)};
}

/* The 16 columns of time of a row, which come of n calls, and the time of their API calls. */
static int64_t put_times(struct dldb_work *w, const struct table *t, size_t row, int64_t n, const struct stat4 *api)
{
	unsigned first = (unsigned)table_find_column(t, STR("total_cpu_time_ns"));
	struct stat4 cpu = stat4_of(t, row, first, n), gpu = stat4_of(t, row, first + 4, n), overhead = stat4_of(t, row, first + 8, n), idle = stat4_of(t, row, first + 12, n);
	int64_t id[] = {put_metric(w, &cpu), put_metric(w, &gpu), put_metric(w, api), put_metric(w, &overhead), put_metric(w, &idle)};
	return dldb_file_put(&w->f, DLDB_node_time_metrics, "iiiii", id[0], id[1], id[2], id[3], id[4]);
}

static int64_t int_cell(const struct table *t, size_t row, const char *id)
{
	return table_i64(t, row, (unsigned)table_find_column(t, str_from(id)));
}

static double real_cell(const struct table *t, size_t row, const char *id)
{
	return table_f64(t, row, (unsigned)table_find_column(t, str_from(id)));
}

/* --- what is aggregated ----------------------------------------------------------------------------------------- */

struct dldb_write_kernel {
	uint32_t gpu, op, iteration;
	struct str name;
};

struct dldb_sums {
	struct dldb_work *w;
	struct window window;
	struct dlprof_iterations all;
	uint32_t first, last;
	struct stat4 *api, *kernel_gpu, *kernel_api; /* by op */
	struct dldb_write_kernel *kernel;            /* by op, name, then start */
	uint32_t n_kernels;
	int64_t *times_row;                          /* op -> its row in node_time_metrics */
};

static uint32_t dldb_write_iteration_at(const struct dldb_sums *x, int64_t at)
{
	return FIRST_WHERE(i, 1, x->all.n, x->all.start_ns[i] > at) - 1;
}

static int by_op_and_name(const void *a, const void *b)
{
	const struct dldb_write_kernel *x = a, *y = b;
	return COMPARE(x->op, y->op) ?: str_cmp(x->name, y->name) ?: COMPARE(x->gpu, y->gpu);
}

static int by_op_and_iteration(const void *a, const void *b)
{
	const struct dldb_write_kernel *x = a, *y = b;
	return COMPARE(x->op, y->op) ?: COMPARE(x->iteration, y->iteration) ?: COMPARE(x->gpu, y->gpu);
}

static void find_kernels(struct dldb_sums *x)
{
	const struct profile *p = x->w->p;
	x->kernel = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct dldb_write_kernel);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t k = p->ops->of_gpu[g], op = p->ops->instance[k].op, call = p->gpu_op.call[g];
		if (!x->w->kernel_row[g] || !op_in_window(p, k, &x->window))
			continue;
		stat4_add(&x->kernel_gpu[op], p->gpu_op.dur_ns[g]);
		stat4_add(&x->kernel_api[op], p->span.dur_ns[call]);
		x->kernel[x->n_kernels++] = (struct dldb_write_kernel){g, op, dldb_write_iteration_at(x, p->ops->instance[k].start_ns),
		                                                       kernel_function_name(profile_str(p, p->gpu_op.name[g]))};
	}
	for (uint32_t k = 0; k < p->ops->n_instances; k++)
		if (op_in_window(p, k, &x->window))
			stat4_add(&x->api[p->ops->instance[k].op], p->ops->instance[k].api_ns);
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static const int64_t one = DLDB_AGGREGATION, domain = DLDB_DOMAIN;

static void put_aggregation(struct dldb_sums *x)
{
	char host[256] = "";
	const struct passwd *user = getpwuid(getuid());
	if (gethostname(host, sizeof host - 1) < 0)
		*host = '\0';
	struct str now = arena_str(&x->w->texts, x->w->c->now); /* 2026-01-31T12:00:00Z, which DLProf writes as 2026-01-31 12:00:00 */
	for (size_t i = 0; i < now.n; i++)
		if (now.p[i] == 'T')
			((char *)(uintptr_t)now.p)[i] = ' ';
	now.n -= now.n && now.p[now.n - 1] == 'Z';
	dldb_file_put(&x->w->f, DLDB_aggregations, "sssi", str_from(user ? user->pw_name : ""), str_from(host), now, (int64_t)0);
}

static bool half_type(struct str types) { return str_has(types, STR("float16")) || str_has(types, STR("float8")); }

static void put_op_nodes(struct dldb_sums *x, const struct table *t)
{
	struct dldb_work *w = x->w;
	size_t row = 0;
	for (uint32_t i = 0; i < w->n && row < t->n_rows; i++) {
		uint32_t op = w->order[i].op;
		if (!str_eq(table_str(t, row, 0), w->order[i].names.id))
			continue;
		const struct op *o = &w->p->ops->op[op];
		int64_t calls = int_cell(t, row, "no_calls");
		int64_t times = put_times(w, t, row, calls, &x->api[op]), api = put_metric(w, &x->kernel_api[op]), gpu = put_metric(w, &x->kernel_gpu[op]);
		int64_t kernels = dldb_file_put(&w->f, DLDB_kernel_time_metrics, "ii", api, gpu);
		int64_t bad = !o->tc_eligible ? 0 : !o->data_type.n ? ID_NONE : !half_type(o->data_type);
		dldb_file_put(&w->f, DLDB_op_nodes, "iiiiiiiin", one, w->op_row[op], times, kernels, calls, x->kernel_gpu[op].n, int_cell(t, row, "tc_eligible"),
		              int_cell(t, row, "using_tc"), bad);
		x->times_row[op] = times;
		row++;
	}
	assert(row == t->n_rows);
}

static int64_t level_of(struct str name)
{
	int64_t n = 0;
	for (size_t i = 0; i < name.n; i++)
		n += name.p[i] == '/';
	return n;
}

/* Groups, then the ops in them. */
static void put_groups(struct dldb_sums *x, const struct table *t, const struct table *ops)
{
	struct dldb_work *w = x->w;
	unsigned cpu = (unsigned)table_find_column(t, STR("total_cpu_time_ns"));
	for (size_t r = 0; r < t->n_rows; r++) {
		struct str name = table_str(t, r, 0);
		double mean = table_f64(t, r, cpu + 1);
		int64_t iterations = mean > 0 ? llround((double)table_i64(t, r, cpu) / mean) : 1, api_ns = table_i64(t, r, cpu) - table_i64(t, r, cpu + 8);
		struct stat4 api = {iterations, api_ns, iterations == 1 ? api_ns : ID_NONE, iterations == 1 ? api_ns : ID_NONE};
		if (str_eqc(name, "_CompleteModel_"))
			continue;
		dldb_file_put(&w->f, DLDB_group_ops, "iiiwwiiiii", one, domain, (int64_t)1, name, name, level_of(name), int_cell(t, r, "num_calls_aggregated"),
		              int_cell(t, r, "num_tc_eligible_ops"), int_cell(t, r, "num_ops_using_tc"), put_times(w, t, r, iterations, &api));
	}
	for (uint32_t i = 0, row = 0; i < w->n && row < ops->n_rows; i++) {
		const struct dlprof_op_row *o = &w->order[i];
		if (!x->times_row[o->op])
			continue;
		dldb_file_put(&w->f, DLDB_group_ops, "iiiwwiiiii", one, domain, (int64_t)2, o->names.id, o->names.name, level_of(w->p->ops->op[o->op].name) + 1,
		              int_cell(ops, row, "no_calls"), int_cell(ops, row, "tc_eligible"), int_cell(ops, row, "using_tc"), x->times_row[o->op]);
		row++;
	}
}

static void stat4_join(struct stat4 *to, const struct stat4 *s)
{
	if (!s->n)
		return;
	to->min = !to->n || s->min < to->min ? s->min : to->min;
	to->max = !to->n || s->max > to->max ? s->max : to->max;
	to->sum += s->sum;
	to->n += s->n;
}

static void put_types(struct dldb_sums *x, const struct table *t)
{
	struct dldb_work *w = x->w;
	struct stat4 *api = NEW_ARRAY((size_t)w->n + 1, struct stat4); /* by type */
	struct intern types;
	intern_init(&types);
	for (uint32_t i = 0; i < w->n; i++)
		stat4_join(&api[intern_str(&types, w->order[i].names.type)], &x->api[w->order[i].op]);
	for (size_t r = 0; r < t->n_rows; r++) {
		struct str type = table_str(t, r, 0);
		uint32_t of = intern_find(&types, type);
		assert(of != INTERN_NONE); /* what has rows has a place in the order */
		int64_t calls = int_cell(t, r, "no_calls"), times = put_times(w, t, r, calls, &api[of]);
		dldb_file_put(&w->f, DLDB_op_type_metrics, "iiwiii", one, domain, type, times, int_cell(t, r, "no_ops"), calls);
	}
	intern_release(&types);
	mem_free(api);
}

static void put_kernel_summaries(struct dldb_sums *x)
{
	const struct profile *p = x->w->p;
	for (uint32_t i = 0, end; i < x->n_kernels; i = end) {
		struct stat4 gpu = {0}, api = {0};
		bool uses = false;
		for (end = i; end < x->n_kernels && x->kernel[end].op == x->kernel[i].op && str_eq(x->kernel[end].name, x->kernel[i].name); end++) {
			uint32_t g = x->kernel[end].gpu;
			stat4_add(&gpu, p->gpu_op.dur_ns[g]);
			stat4_add(&api, p->span.dur_ns[p->gpu_op.call[g]]);
			uses |= op_tc_of(x->w->tc, g) == TRI_YES;
		}
		int64_t api_row = put_metric(x->w, &api), gpu_row = put_metric(x->w, &gpu);
		dldb_file_put(&x->w->f, DLDB_kernel_summaries, "iiiwiii", one, domain, x->w->op_row[x->kernel[i].op], x->kernel[i].name, api_row, gpu_row, (int64_t)uses);
	}
}

struct kernel_count {
	int64_t n, tc, ns, tc_ns;
};

static void kernel_count_add(struct kernel_count *c, const struct dldb_sums *x, uint32_t g)
{
	bool tc = op_tc_of(x->w->tc, g) == TRI_YES;
	int64_t ns = x->w->p->gpu_op.dur_ns[g];
	c->n++;
	c->tc += tc;
	c->ns += ns;
	c->tc_ns += tc ? ns : 0;
}

/* A row for each kernel, with the sums of its op in its iteration; and one for each iteration. */
static void put_kernel_iterations(struct dldb_sums *x)
{
	struct kernel_count *all = NEW_ARRAY(x->all.n, struct kernel_count);
	qsort(x->kernel, x->n_kernels, sizeof *x->kernel, by_op_and_iteration);
	for (uint32_t i = 0, end; i < x->n_kernels; i = end) {
		struct kernel_count c = {0};
		for (end = i; end < x->n_kernels && x->kernel[end].op == x->kernel[i].op && x->kernel[end].iteration == x->kernel[i].iteration; end++) {
			kernel_count_add(&c, x, x->kernel[end].gpu);
			kernel_count_add(&all[x->kernel[end].iteration], x, x->kernel[end].gpu);
		}
		for (uint32_t k = i; k < end; k++)
			dldb_file_put(&x->w->f, DLDB_kernel_iteration_node, "iiiiiiiii", one, domain, x->w->op_row[x->kernel[k].op], x->w->kernel_row[x->kernel[k].gpu],
			              (int64_t)x->kernel[k].iteration, c.n, c.tc, c.ns, c.tc_ns);
	}
	for (uint32_t i = x->first; i <= x->last; i++)
		dldb_file_put(&x->w->f, DLDB_kernel_iteration_stats, "iiiiiii", one, domain, (int64_t)i, all[i].n, all[i].tc, all[i].ns, all[i].tc_ns);
	mem_free(all);
}

static int64_t end_of(const struct dldb_sums *x, uint32_t i) { return i + 1 < x->all.n ? x->all.start_ns[i + 1] : x->all.stop_ns[i]; }

static void put_iterations(struct dldb_sums *x)
{
	struct dldb_work *w = x->w;
	uint32_t n = x->last - x->first + 1;
	int64_t *start = NEW_ARRAY(n, int64_t), *end = NEW_ARRAY(n, int64_t);
	struct usage *u = NEW_ARRAY(n, struct usage);
	for (uint32_t i = 0; i < x->all.n; i++)
		dldb_file_put(&w->f, DLDB_iteration_list, "iiii", one, (int64_t)i, x->all.start_ns[i] - w->zero_ns, x->all.stop_ns[i] - w->zero_ns);
	for (uint32_t i = 0; i < n; i++) {
		start[i] = x->all.start_ns[x->first + i];
		end[i] = end_of(x, x->first + i);
	}
	usage_measure_all(w->p, start, end, n, &dlprof_usage, u);
	for (uint32_t i = 0; i < n; i++)
		dldb_file_put(&w->f, DLDB_iteration_aggregation_list, "iifiiiiiii", one, (int64_t)(x->first + i),
		              u[i].window_ns > 0 ? 100 * u[i].device_busy_ns / (double)u[i].window_ns : 0.0, (int64_t)llround(u[i].ns[USAGE_TC]),
		              (int64_t)llround(u[i].ns[USAGE_KERNEL]), (int64_t)llround(u[i].ns[USAGE_MEMORY]), (int64_t)llround(u[i].ns[USAGE_DATALOADER]),
		              (int64_t)llround(u[i].ns[USAGE_IO]), (int64_t)llround(u[i].ns[USAGE_CPU]), (int64_t)llround(u[i].ns[USAGE_OTHER]));
	mem_free(start);
	mem_free(end);
	mem_free(u);
	dldb_file_put(&w->f, DLDB_iteration_key, "iw", one, x->all.calls ? x->all.key : w->p->key_op);
}

/* Share of the aggregated time in which each GPU ran a kernel. */
static void put_devices(struct dldb_sums *x)
{
	const struct profile *p = x->w->p;
	int64_t start = x->all.start_ns[x->first], end = end_of(x, x->last);
	for (uint32_t d = 0; d < p->device.rows.n; d++) {
		struct intervals busy = {0};
		if (!x->w->device_row[d])
			continue;
		for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
			if (p->gpu_op.kind[g] == GPU_KERNEL && p->launch.device[p->gpu_op.launch[g]] == p->device.id[d])
				intervals_add(&busy, p->gpu_op.start_ns[g], gpu_end(p, g));
		intervals_normalise(&busy);
		double share = end > start ? 100.0 * (double)intervals_length_within(&busy, start, end) / (double)(end - start) : 0;
		dldb_file_put(&x->w->f, DLDB_device_gpu_utilizations, "iiif", one, domain, x->w->device_row[d], share);
		intervals_release(&busy);
	}
}

/* --- the summary ------------------------------------------------------------------------------------------------ */

static const struct table *section_of(const struct table *t, const char *name)
{
	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	assert(t);
	return t;
}

/* Overhead and idle time of ops add up, as those of groups do not. */
static int64_t put_category(struct dldb_sums *x, const struct table *t, size_t row, const struct table *ops, int use)
{
	int64_t overhead = 0, idle = 0;
	for (size_t r = 0; ops && r < ops->n_rows; r++) {
		int of = int_cell(ops, r, "using_tc") ? 1 : int_cell(ops, r, "tc_eligible") ? 2 : 3;
		if (use && of != use)
			continue;
		overhead += int_cell(ops, r, "total_cpu_overhead_time_ns");
		idle += int_cell(ops, r, "total_gpu_idle_time_ns");
	}
	return dldb_file_put(&x->w->f, DLDB_category_summary, "iiiii", int_cell(t, row, "cpu_time_ns"), int_cell(t, row, "gpu_time_ns"), overhead, idle,
	                     table_i64(t, row, 3));
}

static void put_summary(struct dldb_sums *x, const struct table *t, const struct table *ops)
{
	enum { ALL, USING, NEXT, OTHER }; /* rows: of ops those that could use them, of kernels copies and sets */
	struct dldb_file *f = &x->w->f;
	const struct table *s = section_of(t, "summary_report"), *i = section_of(t, "iterations"), *o = section_of(t, "all_ops"), *k = section_of(t, "all_kernels");
	int64_t nodes[] = {put_category(x, o, ALL, ops, 0), put_category(x, o, NEXT, ops, 2), put_category(x, o, USING, ops, 1), put_category(x, o, OTHER, ops, 3)};
	int64_t kernels = dldb_file_put(f, DLDB_category_summary, "iiiii", int_cell(k, ALL, "cpu_time_ns") - int_cell(k, NEXT, "cpu_time_ns"),
	                                int_cell(k, ALL, "gpu_time_ns") - int_cell(k, NEXT, "gpu_time_ns"), (int64_t)0, (int64_t)0, table_i64(k, ALL, 3) - table_i64(k, NEXT, 3));
	int64_t use = put_category(x, k, USING, NULL, 0), other = put_category(x, k, OTHER, NULL, 0), memory = put_category(x, k, NEXT, NULL, 0);
	dldb_file_put(f, DLDB_kernel_summary_metrics, "iiiii", one, domain, kernels, use, other);
	dldb_file_put(f, DLDB_memory_summary_metrics, "iii", one, domain, memory);
	dldb_file_put(f, DLDB_model_summary, "iiiiiiiifffffffffffiiiiw", one, domain, (int64_t)1, int_cell(s, 0, "wall_clock_time_ns"), nodes[0], nodes[1], nodes[2], nodes[3],
	              real_cell(s, 0, "gpu_utilization"), real_cell(s, 0, "tensor_core_kernel_utilization"), real_cell(s, 0, "tensor_core_kernel_duration"),
	              real_cell(s, 0, "non_tensor_core_kernel_duration"), real_cell(s, 0, "memory_duration"), real_cell(s, 0, "dataloader_duration"),
	              real_cell(s, 0, "io_duration"), real_cell(s, 0, "cpu_duration"), real_cell(s, 0, "other_duration"), real_cell(i, 0, "average_iteration_time_ns"),
	              real_cell(i, 0, "iteration_time_standard_deviation"), int_cell(i, 0, "total_iterations"), int_cell(i, 0, "aggregated_iterations"),
	              int_cell(i, 0, "start_iteration"), int_cell(i, 0, "stop_iteration"), x->all.calls ? x->all.key : x->w->p->key_op);
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static int put_reports(struct dldb_sums *x, struct err *e)
{
	static const struct { report_run_fn *run; const char *name; } reports[] = {
		{dlprof_ops, "ops"}, {dlprof_op_types, "op-types"}, {dlprof_groups, "groups"}, {dlprof_summary, "summary"},
	};
	enum { OPS, TYPES, GROUPS, SUMMARY, REPORTS };
	struct table t[REPORTS];
	int rc = 0;
	for (int i = 0; i < REPORTS; i++)
		table_init(&t[i], reports[i].name, "");
	for (int i = 0; i < REPORTS && !rc; i++)
		rc = reports[i].run(x->w->p, x->w->c->args, &t[i], e);
	if (!rc) {
		put_op_nodes(x, &t[OPS]);
		put_groups(x, &t[GROUPS], &t[OPS]);
		put_types(x, &t[TYPES]);
		put_summary(x, &t[SUMMARY], &t[OPS]);
	}
	for (int i = 0; i < REPORTS; i++)
		table_release(&t[i]);
	return rc;
}

/* The ids that DLProf is known to give findings, and what its viewer then shows. */
static int put_findings(struct dldb_sums *x, struct err *e)
{
	struct findings f;
	if (dlprof_findings_of(x->w->p, x->w->c->args, &f, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.n; i++)
		dldb_file_put(&x->w->f, DLDB_expert_systems_feedback, "isssss", one, str_from(f.v[i].detector), f.v[i].problem, f.v[i].advice,
		              strcmp(f.v[i].detector, "amp_detector") == 0 ? STR("ShowBadDataTypeOps") : STR(""), STR(""));
	findings_release(&f);
	return 0;
}

int dldb_write_sums(struct dldb_work *w, struct err *e)
{
	const struct report_args *args = w->c->args;
	struct dldb_sums x = {.w = w};
	if (window_of(w->p, args, &x.window, e) < 0)
		return -1;
	dlprof_iterations_of(w->p, w->p->key_op, &x.all);
	x.last = x.all.n - 1;
	if (args->has_steps) {
		x.first = args->step_first > 0 ? (uint32_t)args->step_first : 0;
		x.last = args->step_last < x.last ? (uint32_t)args->step_last : x.last;
	}
	x.api = NEW_ARRAY(w->p->ops->n_ops, struct stat4);
	x.kernel_gpu = NEW_ARRAY(w->p->ops->n_ops, struct stat4);
	x.kernel_api = NEW_ARRAY(w->p->ops->n_ops, struct stat4);
	x.times_row = NEW_ARRAY(w->p->ops->n_ops, int64_t);
	find_kernels(&x);
	put_aggregation(&x);
	int rc = put_reports(&x, e) ?: put_findings(&x, e);
	if (!rc) {
		qsort(x.kernel, x.n_kernels, sizeof *x.kernel, by_op_and_name);
		put_kernel_summaries(&x);
		put_kernel_iterations(&x);
		put_iterations(&x);
		put_devices(&x);
	}
	dlprof_iterations_release(&x.all);
	mem_free(x.api);
	mem_free(x.kernel_gpu);
	mem_free(x.kernel_api);
	mem_free(x.kernel);
	mem_free(x.times_row);
	return rc;
}
