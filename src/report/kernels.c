/* Device kernels: how often, how long, with which launch configuration, for which op. */
#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/time/gpu_metrics.h"
#include "base/round.h"
#include "report/parts/kernel_calls.h"
#include "report/parts/kernel_groups.h"
#include "report/parts/launch_limit.h"

#include <math.h>

/* The smallest duration that at least `percent` of the calls do not exceed (nearest rank). */
static int64_t percentile(const struct kernel_groups *g, const struct kernel_group *x, unsigned percent)
{
	uint64_t rank = (x->calls * percent + 99) / 100;
	return (int64_t)g->durations[x->first + (rank ? rank - 1 : 0)].key;
}

/* The median as query/stats.h defines it. */
static double median(const struct kernel_groups *g, const struct kernel_group *x)
{
	const struct sort_item *d = &g->durations[x->first];
	uint64_t n = x->calls;
	return (double)(int64_t)d[(n - 1) / 2].key / 2 + (double)(int64_t)d[n / 2].key / 2;
}

/* The standard deviation of a sample, as query/stats.h defines it. Computed from the mean, so that long sums of squares cannot cancel. */
static double deviation(const struct kernel_groups *g, const struct kernel_group *x)
{
	double mean = (double)x->total / (double)x->calls, sum = 0;
	for (uint64_t i = 0; i < x->calls; i++) {
		double d = (double)(int64_t)g->durations[x->first + i].key - mean;
		sum += d * d;
	}
	return x->calls < 2 ? 0 : sqrt(sum / (double)(x->calls - 1));
}

enum {
	KERNELS_NAME, KERNELS_OP, KERNELS_GRID, KERNELS_BLOCK, KERNELS_REGS, KERNELS_SHARED, KERNELS_CLASS, KERNELS_TC, KERNELS_DTYPE, KERNELS_ARCH,
	KERNELS_CALLS, KERNELS_TOTAL, KERNELS_SHARE, KERNELS_MEAN, KERNELS_MIN, KERNELS_MAX, KERNELS_MEDIAN, KERNELS_P95, KERNELS_P99, KERNELS_SD,
	KERNELS_BLOCKS, KERNELS_OCC, KERNELS_LINES,
	KERNELS_LIMIT, KERNELS_MEASURED = KERNELS_LIMIT + LAUNCH_LIMIT_COLUMNS, KERNELS_COUNTERS, KERNELS_GBS = KERNELS_COUNTERS + COUNTERS,
	KERNELS_SAMPLED_CALLS, KERNELS_SAMPLES, KERNELS_SAMPLED, KERNELS_SAMPLED_DRAM = KERNELS_SAMPLED + SAMPLED_DRAM_READ, KERNELS_SAMPLED_WHY
};

static const struct section kernels_section = {.by = BY(KERNELS_BY_NAME) | BY(KERNELS_BY_OP) | BY(KERNELS_BY_LAUNCH), COLUMNS(
	[KERNELS_NAME] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	[KERNELS_OP] = {COLUMN(TEXT, "operator", "Operator", "op, collective or optimizer that launched it: the innermost, as in `operators`; empty = none known",
	                       .flags = COLUMN_GROUP), .not_by = BY(KERNELS_BY_NAME)},
	[KERNELS_GRID] = {COLUMN(TEXT, "grid", "Grid", "blocks in x, y, z"), .by = BY(KERNELS_BY_LAUNCH)},
	[KERNELS_BLOCK] = {COLUMN(TEXT, "block", "Block", "threads of a block in x, y, z"), .by = BY(KERNELS_BY_LAUNCH)},
	[KERNELS_REGS] = {COLUMN(NUMBER, "registers_per_thread", "Regs", "registers per thread", .flags = COLUMN_MINOR), .by = BY(KERNELS_BY_LAUNCH)},
	[KERNELS_SHARED] = {COLUMN(BYTES, "shared_bytes", "Shared", "shared memory of a block"), .by = BY(KERNELS_BY_LAUNCH)},
	[KERNELS_CLASS] = {COLUMN(TEXT, "class", "Class", "what it does, by its name", .flags = COLUMN_MINOR)},
	[KERNELS_TC] = {COLUMN(TEXT, "tensor_cores", "TC", "whether it uses Tensor Cores, by its name; a compiler's dot product also by the types of the op that launched it: yes, no or unknown", .flags = COLUMN_ANSWER)},
	[KERNELS_DTYPE] = {COLUMN(TEXT, "dtype", "Type", "operand type of products (gemm, conv, attention), by its name; empty = the name does not tell",
	                          .flags = COLUMN_DETAIL)},
	[KERNELS_ARCH] = {COLUMN(TEXT, "built_for", "Built for", "architecture it was built for, by its name: sm80, gfx942; empty = the name does not tell",
	                         .flags = COLUMN_DETAIL)},
	[KERNELS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran")},
	[KERNELS_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of its durations", .flags = COLUMN_ANSWER)},
	[KERNELS_SHARE] = {COLUMN(PERCENT, "total_pct", "Total %", "total / total of all rows", .flags = COLUMN_ANSWER)},
	[KERNELS_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "mean duration")},
	[KERNELS_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest duration", .flags = COLUMN_MINOR)},
	[KERNELS_MAX] = {COLUMN(NS, "max_ns", "Max", "longest duration", .flags = COLUMN_MINOR)},
	[KERNELS_MEDIAN] = {COLUMN(MEAN_NS, "median_ns", "Median", "median duration; of an even number the mean of the two in the middle", .flags = COLUMN_DETAIL)},
	[KERNELS_P95] = {COLUMN(NS, "p95_ns", "p95", "95th percentile of the duration (nearest rank)", .flags = COLUMN_DETAIL)},
	[KERNELS_P99] = {COLUMN(NS, "p99_ns", "p99", "99th percentile of the duration (nearest rank)", .flags = COLUMN_DETAIL)},
	[KERNELS_SD] = {COLUMN(MEAN_NS, "stddev_ns", "Std dev", "standard deviation of the durations as a sample (n - 1); 0 of one", .flags = COLUMN_DETAIL)},
	[KERNELS_BLOCKS] = {COLUMN(REAL, "mean_blocks_per_sm", "Blocks/SM", "mean over its calls, weighted by duration", .digits = 2), .when = WHEN_RECORDED},
	[KERNELS_OCC] = {COLUMN(PERCENT, "mean_occupancy_pct", "Est. occ. %", "estimated achieved occupancy: as the trace states it, else computed from the launch and "
	                        "the limits of an SM; mean over its calls, weighted by duration"), .when = WHEN_RECORDED},
	[KERNELS_LINES] = {COLUMN(TEXT, "source_lines", "Source lines", "lines of the program that compiled code launched it for, as in `compile`; (several) = not the same ones in all its calls; "
	                          "empty = not known", .flags = COLUMN_WIDE | COLUMN_PATH), .when = WHEN_SOURCES},
	LAUNCH_LIMIT_COLUMN_LIST(KERNELS_LIMIT, BY(KERNELS_BY_LAUNCH)),
	[KERNELS_MEASURED] = {COLUMN(COUNT, "measured_calls", "Measured", "calls that have hardware counters, of which the columns measured_... are"), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_DRAM_BYTES] = {COLUMN(MEAN_BYTES, "measured_dram_per_call_bytes", "DRAM per call", "bytes read from and written to the device's memory, measured, mean of a call", .flags = COLUMN_ANSWER), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_TENSOR_FLOPS] = {COLUMN(REAL, "measured_tensor_per_call_flops", "TC FLOPs per call", "operations of Tensor Cores, measured, a multiply-add as 2; mean of a call", .flags = COLUMN_MINOR), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_TENSOR_INST] = {COLUMN(REAL, "measured_tensor_per_call_instructions", "TC instr. per call", "instructions of Tensor Cores, measured, mean of a call", .flags = COLUMN_MINOR), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_OCCUPANCY_PCT] = {COLUMN(PERCENT, "measured_occupancy_pct", "Occ. measured %", "achieved occupancy, measured: active warps in percent of the most; mean weighted by duration"), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_SM_PCT] = {COLUMN(PERCENT, "measured_sm_pct", "SM measured %", "throughput of the SMs in percent of the peak, measured; mean weighted by duration"), .when = WHEN_COUNTERS},
	[KERNELS_COUNTERS + COUNTER_DRAM_PCT] = {COLUMN(PERCENT, "measured_dram_pct", "DRAM measured %", "throughput of the device's memory in percent of the peak, measured; mean weighted by duration"), .when = WHEN_COUNTERS},
	[KERNELS_GBS] = {COLUMN(REAL, "measured_gb_per_s", "GB/s measured", "measured bytes / duration in the trace", .digits = 1), .when = WHEN_COUNTERS},
	[KERNELS_SAMPLED_CALLS] = {COLUMN(COUNT, "sampled_calls", "Sampled", "calls in which samples of the GPU's metrics lie while no other work ran", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLES] = {COLUMN(COUNT, "samples", "Samples", "how many do, of which the columns sampled_... are the means over time"), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED + SAMPLED_SM_ACTIVE] = {COLUMN(PERCENT, "sampled_sm_active_pct", "SMs active %", "sampled: SMs that had a warp", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED + SAMPLED_SM_ISSUE] = {COLUMN(PERCENT, "sampled_sm_issue_pct", "SM issue %", "sampled: schedulers that issued an instruction", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED + SAMPLED_TENSOR_ACTIVE] = {COLUMN(PERCENT, "sampled_tensor_active_pct", "Tensor active %", "sampled: pipes of Tensor Cores that were issuing", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED + SAMPLED_WARPS] = {COLUMN(PERCENT, "sampled_warps_pct", "Warps %", "sampled: warps in flight, of the most that all SMs of the GPU hold; occupancy is that of the SMs that have any", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED_DRAM] = {COLUMN(PERCENT, "sampled_dram_pct", "DRAM sampled %", "sampled: reads from and writes to the device's memory, of its peak", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[KERNELS_SAMPLED_WHY] = {COLUMN(TEXT, "sampled_unknown", "Not sampled", "why the columns sampled_... are unknown", .flags = COLUMN_WIDE | COLUMN_DETAIL), .when = WHEN_SAMPLES},
)};

static void kernels_start(struct table *out, const struct kernel_groups *g, const struct report_args *args)
{
	section_start(&kernels_section, args, WHEN_RECORDED | (g->sources ? WHEN_SOURCES : 0) | (g->counters ? WHEN_COUNTERS : 0) | (g->samples ? WHEN_SAMPLES : 0), out);
	for (unsigned i = 0; g->counters && i < COUNTERS; i++)
		if (!g->measured.of[i].calls)
			section_leave_out(&kernels_section, KERNELS_COUNTERS + i, out);
	if (g->counters && !g->measured.of[COUNTER_DRAM_BYTES].ns)
		section_leave_out(&kernels_section, KERNELS_GBS, out);
	for (unsigned m = 0; g->samples && m < SAMPLED_METRICS; m++)
		if (!g->sampled.ns[m])
			section_leave_out(&kernels_section, KERNELS_SAMPLED + (m < SAMPLED_DRAM_READ ? m : SAMPLED_DRAM_READ), out);
	if (!g->blocks)
		section_leave_out(&kernels_section, KERNELS_BLOCKS, out);
	if (!g->occupancy)
		section_leave_out(&kernels_section, KERNELS_OCC, out);
}

static void kernels_put_launch(struct table *out, const struct kernel_key *k)
{
	kernel_groups_put_triple(out, KERNELS_GRID, k->grid, "%d,%d,%d");
	kernel_groups_put_triple(out, KERNELS_BLOCK, k->block, "%d,%d,%d");
	if (k->registers != INT32_MIN)
		table_set_i64(out, KERNELS_REGS, k->registers);
	if (k->shared_bytes != INT32_MIN)
		table_set_i64(out, KERNELS_SHARED, k->shared_bytes);
}

/* What is true of all calls: of one name, calls of ops of another type may be unknown. */
static enum tri kernels_tensor_core(const struct kernel_group *x)
{
	return x->tc_calls[TRI_UNKNOWN] ? TRI_UNKNOWN : x->tc_calls[TRI_YES] ? TRI_YES : TRI_NO;
}

/* Which kernel the row is, and what is known of it by its name and its ops. */
static void kernels_put_name(struct table *out, const struct kernel_groups *g, const struct kernel_group *x, const struct kernel_info *info)
{
	table_set_str(out, KERNELS_NAME, profile_str(g->p, x->key.name));
	if (x->key.op)
		table_set_str(out, KERNELS_OP, profile_str(g->p, x->key.op));
	if (g->by == KERNELS_BY_LAUNCH)
		kernels_put_launch(out, &x->key);
	table_set_str(out, KERNELS_CLASS, str_from(kernel_class_name[info->class]));
	table_set_str(out, KERNELS_TC, str_from(tri_name[kernels_tensor_core(x)]));
	table_set_str(out, KERNELS_DTYPE, info->dtype ? str_from(dtype_name(info->dtype)) : STR(""));
	table_set_str(out, KERNELS_ARCH, str_from(info->arch));
}

static void kernels_put_times(struct table *out, const struct kernel_groups *g, const struct kernel_group *x)
{
	table_set_i64(out, KERNELS_CALLS, (int64_t)x->calls);
	table_set_i64(out, KERNELS_TOTAL, x->total);
	table_set_f64(out, KERNELS_SHARE, percent((double)x->total, (double)g->all_ns));
	table_set_f64(out, KERNELS_MEAN, (double)x->total / (double)x->calls);
	table_set_i64(out, KERNELS_MIN, x->min);
	table_set_i64(out, KERNELS_MAX, x->max);
	table_set_f64(out, KERNELS_MEDIAN, median(g, x));
	table_set_i64(out, KERNELS_P95, percentile(g, x, 95));
	table_set_i64(out, KERNELS_P99, percentile(g, x, 99));
	table_set_f64(out, KERNELS_SD, deviation(g, x));
}

static void kernels_put_launches(struct table *out, const struct kernel_group *x)
{
	if (x->blocks_ns)
		table_set_f64(out, KERNELS_BLOCKS, x->blocks / ((double)x->blocks_ns / 1000));
	if (x->occupancy_ns)
		table_set_f64(out, KERNELS_OCC, x->occupancy / ((double)x->occupancy_ns / 1000));
	if (x->several_lines || x->lines.n)
		table_set_str(out, KERNELS_LINES, x->several_lines ? STR("(several)") : x->lines);
}

static void kernels_put_counters(struct table *out, const struct kernel_group *x)
{
	const struct counter_sums *s = &x->counters;
	table_set_i64(out, KERNELS_MEASURED, (int64_t)s->calls);
	for (unsigned i = 0; i < COUNTERS; i++)
		table_set_f64(out, KERNELS_COUNTERS + i, counter_mean(s, (enum counter)i));
	if (s->of[COUNTER_DRAM_BYTES].ns)
		table_set_f64(out, KERNELS_GBS, s->of[COUNTER_DRAM_BYTES].sum / (double)s->of[COUNTER_DRAM_BYTES].ns);
}

static void kernels_put_sampled(struct table *out, const struct kernel_groups *g, const struct kernel_group *x)
{
	double v[SAMPLED_METRICS];
	sampled_sums_means(&x->sampled, v);
	table_set_i64(out, KERNELS_SAMPLED_CALLS, (int64_t)x->sampled.calls);
	table_set_i64(out, KERNELS_SAMPLES, (int64_t)x->sampled.samples);
	for (unsigned m = 0; m < SAMPLED_DRAM_READ; m++)
		table_set_f64(out, KERNELS_SAMPLED + m, v[m]);
	table_set_f64(out, KERNELS_SAMPLED_DRAM, sampled_dram_pct(v));
	if (sampled_sums_tell(&x->sampled))
		return;
	struct buf why = {0};
	sampled_put_why(g->p, &x->sampled, x->device, x->max, &why);
	table_set_str_copy(out, KERNELS_SAMPLED_WHY, buf_view(&why));
	buf_release(&why);
}

/* by_tc: time by enum tri, whole graphs left out; in_ops: time that an op, collective or optimizer launched. */
static void kernels_put_notes(struct table *out, const struct kernel_groups *g, const int64_t by_tc[3], int64_t in_ops)
{
	table_note(out, "kernels %lld ns = with Tensor Cores %lld + without %lld + unknown %lld", (long long)(g->all_ns - g->graphs_ns),
	           (long long)by_tc[TRI_YES], (long long)by_tc[TRI_NO], (long long)by_tc[TRI_UNKNOWN]);
	if (g->graphs)
		table_note(out, "rows of class graph are not kernels: %llu replay%s of whole CUDA graphs, %lld ns, whose kernels were not recorded one by one: nsys profile "
		           "--cuda-graph-trace=node, opscope record --graph=node", (unsigned long long)g->graphs, g->graphs == 1 ? "" : "s", (long long)g->graphs_ns);
	if (g->counters)
		table_note(out, "measured by hardware counters in another run: %llu of %llu calls; durations are those of this recording", (unsigned long long)g->measured.calls, (unsigned long long)g->n_durations);
	if (g->samples)
		table_note(out, "samples of the GPU's metrics lie in %llu of %llu calls: those in which one kernel alone ran, from one sample to the one behind the next. They are of the whole GPU: work of other "
		           "programs counts", (unsigned long long)g->sampled.calls, (unsigned long long)g->n_durations);
	if (g->by != KERNELS_BY_NAME)
		table_note(out, "kernels%s %lld ns = launched by an op, collective or optimizer %lld + unattributed %lld", g->graphs ? " and whole graphs" : "", (long long)g->all_ns,
		           (long long)in_ops, (long long)(g->all_ns - in_ops));
}

static int kernels_put(struct table *out, const struct kernel_groups *g, const struct report_args *args, struct err *e)
{
	int64_t by_tc[3] = {0}, in_ops = 0;
	kernels_start(out, g, args);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct kernel_group *x = &g->v[i];
		struct kernel_info info = *name_kernel(g->p, x->key.name);
		for (int tc = 0; tc < 3; tc++)
			by_tc[tc] += info.class == KERNEL_GRAPH ? 0 : x->tc_ns[tc];
		in_ops += x->key.op ? x->total : 0;
		table_row(out);
		kernels_put_name(out, g, x, &info);
		kernels_put_times(out, g, x);
		kernels_put_launches(out, x);
		if (g->by == KERNELS_BY_LAUNCH && x->launch != ROW_NONE)
			launch_limit_put(g->p, x->launch, out, KERNELS_LIMIT);
		if (g->counters)
			kernels_put_counters(out, x);
		if (g->samples)
			kernels_put_sampled(out, g, x);
	}
	kernels_put_notes(out, g, by_tc, in_ops);
	return table_sort(out, STR("total_ns"), true, e);
}

static const struct kernel_rules kernels_rules = {.op = optree_operator, .blocks_per_sm = launch_blocks_per_sm, .occupancy_pct = launch_occupancy_pct};

static int kernels_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct kernel_groups g;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct optree *t = optree_new(p, &optree_own);
	int rc = kernel_groups_collect(p, args, &w, t, &kernels_rules, &g, e);
	if (rc == 0) {
		rc = kernels_put(out, &g, args, e);
		kernel_groups_release(&g);
	}
	optree_free(t);
	return rc;
}

static const struct report_variant kernels_variants[] = {
	{.group_by = "name", .by = KERNELS_BY_NAME, .ignores = LEFT_FLOWS | LEFT_AUX_IDS | LEFT_FRAMES},
	{.group_by = "op", .by = KERNELS_BY_OP, .ignores = LEFT_FLOWS | LEFT_AUX_IDS | LEFT_FRAMES},
	{.group_by = "launch", .by = KERNELS_BY_LAUNCH, .ignores = LEFT_FLOWS | LEFT_AUX_IDS | LEFT_FRAMES},
	{.group_by = "instance", .by = KERNELS_BY_INSTANCE, .run = kernel_calls, .needs = PASS_OPS | PASS_STEPS, .takes = REPORT_LIMIT}, /* kernels one by one have their ops and steps */
	{0},
};

const struct report report_kernels = {
	.name = "kernels",
	.title = "Kernels",
	.also = "kernel gpu cuda",
	.help = "Which kernels took the device's time, how often they ran and how evenly, and whether they use Tensor Cores. Copies and "
	        "sets of memory are no kernels. --group-by=op tells apart the operators that launched them, each the innermost as in `operators`, "
	        "--group-by=launch also the grid, block, registers and shared memory, with what limits the blocks that an SM holds; --group-by=instance lists each launch with its step, this "
	        "operator and the op of the model that it belongs to: the outermost, with its place, as in `ops`.",
	.variants = kernels_variants,
	.sections = (const struct section *const[]){&kernels_section, &kernel_calls_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS | REPORT_DEVICE,
	.ignores = LEFT_MEMORY | LEFT_OP_IDS,
	.run = kernels_run,
};
