/* DLProf's summary report. */
#include "base/round.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"
#include "predecessors/dlprof/system.h"
#include "predecessors/dlprof/usage.h"
#include "query/summary_sums.h"

#include <sys/param.h>

/* The iterations that are aggregated. */
struct dlprof_summary_range {
	struct dlprof_iterations all;
	uint32_t first, last;
	int64_t start_ns, end_ns;
};

static int dlprof_summary_range_of(const struct profile *p, const struct report_args *args, struct dlprof_summary_range *r, struct err *e)
{
	dlprof_iterations_of(p, p->key_op, &r->all);
	int64_t most = (int64_t)r->all.n - 1;
	int64_t first = args->has_steps ? MAX(args->step_first, 0) : 0, last = args->has_steps ? MIN(args->step_last, most) : most;
	if (first > last) {
		dlprof_iterations_release(&r->all);
		return err_set(e, ERR_DATA, "--steps: DLProf's iterations of this input are 0 to %lld", (long long)most);
	}
	r->first = (uint32_t)first;
	r->last = (uint32_t)last;
	r->start_ns = r->all.start_ns[first];
	r->end_ns = last < most ? r->all.start_ns[last + 1] : r->all.stop_ns[last];
	return 0;
}

static void report_table(const struct profile *p, const struct dlprof_summary_range *r, const struct summary_sums *sums, struct table *t)
{
	enum { R_WALL, R_TC_USE, R_GPU_USE, R_TC, R_KERNEL, R_MEMORY, R_LOADER, R_IO, R_CPU, R_OTHER, R_COLUMNS };
#define PERCENT(id, title, help) {id, title, help, CELL_F64, UNIT_NONE, COLUMN_PROSE, 1}
	static const struct column columns[R_COLUMNS] = {
		[R_WALL] = {.id = "wall_clock_time_ns", .title = "Wall Clock Time (ns)", .help = "length of the aggregated iterations", .type = CELL_I64, .digits = 0},
		[R_TC_USE] = PERCENT("tensor_core_kernel_utilization", "Tensor Core Kernel Utilization %",
		                     "of the kernel time of ops that could use Tensor Cores, the part of kernels that do"),
		[R_GPU_USE] = PERCENT("gpu_utilization", "GPU Utilization %", "time with a kernel, as a mean over all visible GPUs"),
		[R_TC] = PERCENT("tensor_core_kernel_duration", "Tensor Core Kernel Duration %", "kernels that use Tensor Cores"),
		[R_KERNEL] = PERCENT("non_tensor_core_kernel_duration", "Non-Tensor Core Kernel Duration %", "else any other kernel"),
		[R_MEMORY] = PERCENT("memory_duration", "Memory Duration %", "else a copy or set"),
		[R_LOADER] = PERCENT("dataloader_duration", "Dataloader Duration %", "else the data loader"),
		[R_IO] = PERCENT("io_duration", "IO Duration %", "else fread or fwrite"),
		[R_CPU] = PERCENT("cpu_duration", "CPU Duration %", "else an op or an API call"),
		[R_OTHER] = PERCENT("other_duration", "Other Duration %", "else"),
	};
#undef PERCENT
	static const enum usage_kind kind[R_COLUMNS] = {
		[R_TC] = USAGE_TC, [R_KERNEL] = USAGE_KERNEL, [R_MEMORY] = USAGE_MEMORY, [R_LOADER] = USAGE_DATALOADER, [R_IO] = USAGE_IO,
		[R_CPU] = USAGE_CPU, [R_OTHER] = USAGE_OTHER,
	};
	struct usage u;
	usage_measure(p, r->start_ns, r->end_ns, &dlprof_usage, &u);
	table_columns(t, columns, R_COLUMNS);
	table_row(t);
	table_set_i64(t, R_WALL, u.window_ns);
	table_set_f64(t, R_TC_USE, percent_or_zero((double)sums->tc_ns, (double)sums->kernel_ns));
	table_set_f64(t, R_GPU_USE, percent_or_zero(u.kernel_busy_ns, (double)u.window_ns));
	for (int c = R_TC; c < R_COLUMNS; c++)
		table_set_f64(t, (unsigned)c, percent_or_zero(u.ns[kind[c]], (double)u.window_ns));
}

static void iterations_table(const struct dlprof_summary_range *r, struct table *t)
{
	enum { I_TOTAL, I_AGGREGATED, I_START, I_STOP, I_MEAN, I_DEVIATION, I_COLUMNS };
	static const struct column columns[I_COLUMNS] = {
		[I_TOTAL] = {.id = "total_iterations", .title = "Total Iterations", .help = "one more than calls of the key op", .type = CELL_I64, .digits = 0},
		[I_AGGREGATED] = {.id = "aggregated_iterations", .title = "Aggregated Iterations", .help = "how many the numbers cover", .type = CELL_I64, .digits = 0},
		[I_START] = {.id = "start_iteration", .title = "Start Iteration", .help = "the first of them", .type = CELL_I64, .digits = 0},
		[I_STOP] = {.id = "stop_iteration", .title = "Stop Iteration", .help = "the last", .type = CELL_I64, .digits = 0},
		[I_MEAN] = {.id = "average_iteration_time_ns", .title = "Average Iteration Time (ns)", .help = "wall clock time / aggregated iterations", .type = CELL_F64,
		            .flags = COLUMN_PROSE, .digits = 1},
		[I_DEVIATION] = {.id = "iteration_time_standard_deviation", .title = "Iteration Time Standard Deviation", .help = "of the population, ns", .type = CELL_F64,
		                 .flags = COLUMN_PROSE, .digits = 1},
	};
	double mean, deviation;
	dlprof_iterations_mean(&r->all, r->first, r->last, &mean, &deviation);
	table_columns(t, columns, I_COLUMNS);
	table_row(t);
	table_set_i64(t, I_TOTAL, r->all.n);
	table_set_i64(t, I_AGGREGATED, r->last - r->first + 1);
	table_set_i64(t, I_START, r->first);
	table_set_i64(t, I_STOP, r->last);
	table_set_f64(t, I_MEAN, mean);
	table_set_f64(t, I_DEVIATION, deviation);
}

static void sums_columns(struct table *t, const char *id, const char *title)
{
	TABLE_COLUMN(t, .id = "row", .title = "Row", .help = "what is added up", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "gpu_time_ns", .title = "GPU Time (ns)", .help = "of ops the union, of kernels the sum", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "cpu_time_ns", .title = "CPU Time (ns)", .help = "of ops the union of their ranges, of kernels the sum of the calls that launched them",
	             .type = CELL_I64);
	TABLE_COLUMN(t, .id = id, .title = title, .help = "how many: kernels by their short names, copies and sets by the names of their calls", .type = CELL_I64);
}

static void sums_row(struct table *t, const char *name, int64_t gpu_ns, int64_t cpu_ns, uint32_t n)
{
	table_row(t);
	table_set_str(t, 0, str_from(name));
	table_set_i64(t, 1, gpu_ns);
	table_set_i64(t, 2, cpu_ns);
	table_set_i64(t, 3, n);
}

static void sums_tables(const struct summary_sums *s, struct table *t)
{
	static const struct { enum tc_use use; const char *title; } ops[] = {
		{TC_ALL, "All ops"}, {TC_USING, "Ops using TC"}, {TC_ELIGIBLE, "Ops eligible for TC but not using"}, {TC_OTHER, "All other ops"},
	}, kernels[] = {
		{TC_ALL, "All kernels"}, {TC_USING, "Kernels using TC"}, {TC_MEMORY, "Memory"}, {TC_OTHER, "All other kernels"},
	};
	struct table *o = table_section(t, "all_ops", "All Ops"), *k = table_section(t, "all_kernels", "All Kernels");
	sums_columns(o, "ops", "# Ops");
	sums_columns(k, "kernels", "# Kernels");
	for (int i = 0; i < 4; i++) {
		const struct op_use *a = &s->op[ops[i].use];
		const struct kernel_use *b = &s->kernel[kernels[i].use];
		sums_row(o, ops[i].title, a->gpu_ns, a->cpu_ns, a->ops);
		sums_row(k, kernels[i].title, b->gpu_ns, b->api_ns, b->names);
	}
}

int dlprof_summary(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	struct dlprof_summary_range r;
	struct summary_sums sums;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0 || dlprof_summary_range_of(p, args, &r, e) < 0)
		return -1;
	summary_sum(p, &w, &dlprof_op_rules, &sums);
	t->title = "System Config";
	TABLE_COLUMN(t, .id = "name", .title = "Name", .help = "what", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "value", .title = "Value", .help = "as recorded; what was not recorded has no row", .type = CELL_STR, .flags = COLUMN_WIDE);
	dlprof_system_rows(p, t);
	report_table(p, &r, &sums, table_section(t, "summary_report", "Summary Report"));
	iterations_table(&r, table_section(t, "iterations", "Iterations"));
	sums_tables(&sums, t);
	dlprof_table_hints(t, p, &w, HINT_GPUS | HINT_KERNELS);
	dlprof_iterations_release(&r.all);
	return 0;
}
