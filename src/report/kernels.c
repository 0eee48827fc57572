/* Device kernels (the plugin's kernel_parser.py): how often, how long, with which launch configuration, for which op. */
#include "analysis/gpu_metrics.h"
#include "analysis/names.h"
#include "analysis/optree.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "op/kernels.h"
#include "report/kernel_calls.h"
#include "report/window.h"

#include <math.h>

enum grouping { BY_NAME, BY_OP, BY_LAUNCH };

/* Group keys, compared as bytes; parts that a grouping does not ask for are 0. */
struct key {
	uint32_t name, op;             /* string ids; op: 0 = none */
	int32_t grid[3], block[3], registers, shared_bytes;
};

struct group {
	struct key key;
	uint64_t calls;
	int64_t total, min, max;
	double blocks, occupancy;      /* sums of value x us, as the plugin weighs them */
	int64_t blocks_ns, occupancy_ns; /* of the calls whose value is known; for the plugin: of all */
	bool has_blocks, has_occupancy, op_eligible;
	uint32_t first;                /* of its durations in `durations` */
};

struct groups {
	const struct profile *p;
	const struct optree *t;
	enum grouping by;
	bool plugin, has_device;
	int64_t device;
	struct intern keys;
	struct group *v;
	uint32_t cap, n;
	struct sort_item *durations;   /* by group, then ascending */
	uint32_t n_durations;
	int64_t all_ns, graphs_ns;     /* graphs: replays of whole graphs, of all */
	uint64_t graphs;
};

static void groups_release(struct groups *g)
{
	intern_release(&g->keys);
	mem_free(g->v);
	mem_free(g->durations);
}

/* The plugin names steps and ranges of the user's, too. */
static uint32_t op_name(const struct groups *g, uint32_t gpu)
{
	uint32_t node = g->t->gpu_node[gpu];
	if (!g->plugin)
		return optree_operator(g->t, g->p, gpu);
	return node == ROW_NONE ? 0 : g->p->span.name[g->t->span[node]];
}

static struct key key_of(const struct groups *g, uint32_t gpu)
{
	const struct launches *l = &g->p->launch;
	struct key k = {.name = g->p->gpu_op.name[gpu]};
	if (g->by != BY_NAME)
		k.op = op_name(g, gpu);
	if (g->by == BY_LAUNCH) {
		uint32_t i = g->p->gpu_op.launch[gpu];
		k.grid[0] = l->grid_x[i], k.grid[1] = l->grid_y[i], k.grid[2] = l->grid_z[i];
		k.block[0] = l->block_x[i], k.block[1] = l->block_y[i], k.block[2] = l->block_z[i];
		k.registers = l->registers[i];
		k.shared_bytes = l->shared_bytes[i];
	}
	return k;
}

static uint32_t group_at(struct groups *g, const struct key *k)
{
	uint32_t before = g->keys.n;
	uint32_t at = intern_put(&g->keys, (const char *)k, sizeof *k) - 1;
	if (g->keys.n > before) {
		MEM_GROW(g->v, g->cap, at + 1);
		g->v[at] = (struct group){.key = *k, .min = INT64_MAX};
		g->n = at + 1;
	}
	return at;
}

static void add(struct groups *g, struct group *x, uint32_t gpu)
{
	int64_t ns = g->p->gpu_op.dur_ns[gpu];
	uint32_t launch = g->p->gpu_op.launch[gpu];
	double blocks = g->plugin ? g->p->launch.blocks_per_sm[launch] : launch_blocks_per_sm(g->p, launch);
	double occupancy = g->plugin ? g->p->launch.occupancy_pct[launch] : launch_occupancy_pct(g->p, launch);
	x->calls++;
	x->total += ns;
	x->min = ns < x->min ? ns : x->min;
	x->max = ns > x->max ? ns : x->max;
	x->blocks_ns += g->plugin || !isnan(blocks) ? ns : 0;
	x->occupancy_ns += g->plugin || !isnan(occupancy) ? ns : 0;
	if (!isnan(blocks)) {
		x->has_blocks = true;
		x->blocks += blocks * ((double)ns / 1000);
	}
	if (!isnan(occupancy)) {
		x->has_occupancy = true;
		x->occupancy += occupancy * ((double)ns / 1000);
	}
	/* The plugin asks before it has looked at what the op called and launched: the name alone decides. */
	uint32_t node = g->plugin ? g->t->gpu_node[gpu] : ROW_NONE;
	x->op_eligible |= node != ROW_NONE && op_tc_eligible_compat(profile_str(g->p, g->p->span.name[g->t->span[node]]));
	g->all_ns += ns;
	if (gpu_is_graph(g->p, gpu)) {
		g->graphs++;
		g->graphs_ns += ns;
	}
}

static bool counts(const struct groups *g, const struct window *w, uint32_t gpu, bool compat)
{
	if (g->p->gpu_op.kind[gpu] != GPU_KERNEL || (compat && g->by != BY_NAME && g->t->gpu_lost[gpu]))
		return false;
	if (g->has_device && g->p->launch.device[g->p->gpu_op.launch[gpu]] != g->device)
		return false;
	return window_has_gpu(w, g->p, gpu);
}

static void collect(struct groups *g, const struct window *w, bool compat)
{
	uint32_t n = g->p->gpu_op.rows.n;
	g->durations = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++) {
		if (!counts(g, w, i, compat))
			continue;
		struct key k = key_of(g, i);
		uint32_t at = group_at(g, &k);
		add(g, &g->v[at], i);
		g->durations[g->n_durations++] = (struct sort_item){(uint64_t)g->p->gpu_op.dur_ns[i], 0, at};
	}
	/* Sorted by duration, then dealt out to the groups in that order: each group's are then sorted as well. */
	sort_items(g->durations, g->n_durations);
	uint32_t *at = NEW_ARRAY_RAW(g->n, uint32_t), next = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		at[i] = g->v[i].first = next;
		next += (uint32_t)g->v[i].calls;
	}
	struct sort_item *dealt = NEW_ARRAY_RAW(g->n_durations, struct sort_item);
	for (uint32_t i = 0; i < g->n_durations; i++)
		dealt[at[g->durations[i].tie]++] = g->durations[i];
	mem_free(g->durations);
	g->durations = dealt;
	mem_free(at);
}

/* Nearest rank: the smallest duration that at least `percent` of the calls do not exceed. */
static int64_t percentile(const struct groups *g, const struct group *x, unsigned percent)
{
	uint64_t rank = (x->calls * percent + 99) / 100;
	return (int64_t)g->durations[x->first + (rank ? rank - 1 : 0)].key;
}

/* As stats.h has it. */
static double median(const struct groups *g, const struct group *x)
{
	const struct sort_item *d = &g->durations[x->first];
	uint64_t n = x->calls;
	return (double)(int64_t)d[(n - 1) / 2].key / 2 + (double)(int64_t)d[n / 2].key / 2;
}

/* As stats.h has it: of a sample; computed from the mean, so that long sums of squares cannot cancel. */
static double deviation(const struct groups *g, const struct group *x)
{
	double mean = (double)x->total / (double)x->calls, sum = 0;
	for (uint64_t i = 0; i < x->calls; i++) {
		double d = (double)(int64_t)g->durations[x->first + i].key - mean;
		sum += d * d;
	}
	return x->calls < 2 ? 0 : sqrt(sum / (double)(x->calls - 1));
}

enum { C_NAME, C_OP, C_GRID, C_BLOCK, C_REGS, C_SHARED, C_CLASS, C_TC, C_DTYPE, C_ARCH, C_CALLS, C_TOTAL, C_SHARE, C_MEAN, C_MIN, C_MAX, C_MEDIAN,
       C_P95, C_P99, C_SD, C_BLOCKS, C_OCC, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_NAME] = {"name", "Kernel", "name of the kernel", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_KERNEL},
	[C_OP] = {"operator", "Operator", "op, collective or optimizer that launched it: the innermost, as in `operators`; empty = none known", CELL_STR,
	          .flags = COLUMN_GROUP},
	[C_GRID] = {"grid", "Grid", "blocks in x, y, z", CELL_STR},
	[C_BLOCK] = {"block", "Block", "threads of a block in x, y, z", CELL_STR},
	[C_REGS] = {"registers_per_thread", "Regs", "registers per thread", CELL_I64, UNIT_NONE, COLUMN_MINOR},
	[C_SHARED] = {"shared_bytes", "Shared", "shared memory of a block", CELL_I64, UNIT_BYTES},
	[C_CLASS] = {"class", "Class", "what it does, by its name", CELL_STR, UNIT_NONE, COLUMN_MINOR},
	[C_TC] = {"tensor_cores", "TC", "whether it uses Tensor Cores, by its name: yes, no or unknown", CELL_STR, UNIT_NONE, COLUMN_KEY},
	[C_DTYPE] = {"dtype", "Type", "operand type of products (gemm, conv, attention), by its name; empty = the name does not tell", CELL_STR,
	             UNIT_NONE, COLUMN_DETAIL},
	[C_ARCH] = {"built_for", "Built for", "architecture it was built for, by its name: sm80, gfx942; empty = the name does not tell", CELL_STR,
	            UNIT_NONE, COLUMN_DETAIL},
	[C_CALLS] = {"calls", "Calls", "how often it ran", CELL_I64, UNIT_COUNT},
	[C_TOTAL] = {"total_ns", "Total", "sum of its durations", CELL_I64, UNIT_NS, COLUMN_KEY},
	[C_SHARE] = {"total_pct", "Total %", "total / total of all rows", CELL_F64, UNIT_PERCENT, COLUMN_KEY},
	[C_MEAN] = {"mean_ns", "Mean", "mean duration", CELL_F64, UNIT_NS},
	[C_MIN] = {"min_ns", "Min", "shortest duration", CELL_I64, UNIT_NS, COLUMN_MINOR},
	[C_MAX] = {"max_ns", "Max", "longest duration", CELL_I64, UNIT_NS, COLUMN_MINOR},
	[C_MEDIAN] = {"median_ns", "Median", "median duration; of an even number the mean of the two in the middle", CELL_F64, UNIT_NS, COLUMN_DETAIL},
	[C_P95] = {"p95_ns", "p95", "95th percentile of the duration (nearest rank)", CELL_I64, UNIT_NS, COLUMN_DETAIL},
	[C_P99] = {"p99_ns", "p99", "99th percentile of the duration (nearest rank)", CELL_I64, UNIT_NS, COLUMN_DETAIL},
	[C_SD] = {"stddev_ns", "Std dev", "standard deviation of the durations as a sample (n - 1); 0 of one", CELL_F64, UNIT_NS, COLUMN_DETAIL},
	[C_BLOCKS] = {"mean_blocks_per_sm", "Blocks/SM", "mean over its calls, weighted by duration", CELL_F64, UNIT_NONE, 0, 2},
	[C_OCC] = {"mean_occupancy_pct", "Est. occ. %", "estimated achieved occupancy: as the trace states it, else computed from the launch and the limits of an SM; mean "
	           "over its calls, weighted by duration", CELL_F64, UNIT_PERCENT},
};

static bool wants(const struct groups *g, unsigned c, bool blocks, bool occupancy)
{
	switch (c) {
	case C_OP:
		return g->by != BY_NAME;
	case C_GRID:
	case C_BLOCK:
	case C_REGS:
	case C_SHARED:
		return g->by == BY_LAUNCH;
	case C_BLOCKS:
		return blocks;
	case C_OCC:
		return occupancy;
	}
	return true;
}

static void put_triple(struct table *out, unsigned col, const int32_t v[3], const char *fmt)
{
	if (v[0] != INT32_MIN)
		table_set_fmt(out, col, fmt, v[0], v[1], v[2]);
}

static void put_launch(struct table *out, const unsigned at[], const struct key *k)
{
	put_triple(out, at[C_GRID], k->grid, "%d,%d,%d");
	put_triple(out, at[C_BLOCK], k->block, "%d,%d,%d");
	if (k->registers != INT32_MIN)
		table_set_i64(out, at[C_REGS], k->registers);
	if (k->shared_bytes != INT32_MIN)
		table_set_i64(out, at[C_SHARED], k->shared_bytes);
}

static int put_default(struct table *out, const struct groups *g, bool blocks, bool occupancy, struct err *e)
{
	static const char *const tri[] = {[TRI_NO] = "no", [TRI_YES] = "yes", [TRI_UNKNOWN] = "unknown"};
	unsigned at[N_COLUMNS];
	int64_t by_tc[3] = {0}, in_ops = 0;
	for (unsigned c = 0; c < N_COLUMNS; c++)
		at[c] = wants(g, c, blocks, occupancy) ? table_column(out, &columns[c]) : UINT32_MAX;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct group *x = &g->v[i];
		struct str name = profile_str(g->p, x->key.name);
		struct kernel_info info = *name_kernel(g->p, x->key.name);
		by_tc[info.tensor_core] += info.class == KERNEL_GRAPH ? 0 : x->total;
		in_ops += x->key.op ? x->total : 0;
		table_row(out);
		table_set_str(out, at[C_NAME], name);
		if (g->by != BY_NAME && x->key.op)
			table_set_str(out, at[C_OP], profile_str(g->p, x->key.op));
		if (g->by == BY_LAUNCH)
			put_launch(out, at, &x->key);
		table_set_str(out, at[C_CLASS], str_from(kernel_class_name[info.class]));
		table_set_str(out, at[C_TC], str_from(tri[info.tensor_core]));
		table_set_str(out, at[C_DTYPE], info.dtype ? str_from(dtype_name(info.dtype)) : STR(""));
		table_set_str(out, at[C_ARCH], str_from(info.arch));
		table_set_i64(out, at[C_CALLS], (int64_t)x->calls);
		table_set_i64(out, at[C_TOTAL], x->total);
		table_set_f64(out, at[C_SHARE], percent((double)x->total, (double)g->all_ns));
		table_set_f64(out, at[C_MEAN], (double)x->total / (double)x->calls);
		table_set_i64(out, at[C_MIN], x->min);
		table_set_i64(out, at[C_MAX], x->max);
		table_set_f64(out, at[C_MEDIAN], median(g, x));
		table_set_i64(out, at[C_P95], percentile(g, x, 95));
		table_set_i64(out, at[C_P99], percentile(g, x, 99));
		table_set_f64(out, at[C_SD], deviation(g, x));
		if (x->blocks_ns)
			table_set_f64(out, at[C_BLOCKS], x->blocks / ((double)x->blocks_ns / 1000));
		if (x->occupancy_ns)
			table_set_f64(out, at[C_OCC], x->occupancy / ((double)x->occupancy_ns / 1000));
	}
	table_note(out, "kernels %lld ns = with Tensor Cores %lld + without %lld + unknown %lld", (long long)(g->all_ns - g->graphs_ns),
	           (long long)by_tc[TRI_YES], (long long)by_tc[TRI_NO], (long long)by_tc[TRI_UNKNOWN]);
	if (g->graphs)
		table_note(out, "rows of class graph are not kernels: %llu replay%s of whole CUDA graphs, %lld ns, whose kernels were not recorded one by one: nsys profile "
		           "--cuda-graph-trace=node, opscope record --graph=node", (unsigned long long)g->graphs, g->graphs == 1 ? "" : "s", (long long)g->graphs_ns);
	if (g->by != BY_NAME)
		table_note(out, "kernels%s %lld ns = launched by an op, collective or optimizer %lld + unattributed %lld", g->graphs ? " and whole graphs" : "", (long long)g->all_ns,
		           (long long)in_ops, (long long)(g->all_ns - in_ops));
	return table_sort(out, STR("total_ns"), true, e);
}

static double mean_or_zero(double sum, int64_t ns)
{
	return ns > 0 ? round_digits(sum / ((double)ns / 1000), 2) : 0;
}

static int put_tb_plugin(struct table *out, const struct groups *g, bool blocks, bool occupancy, struct err *e)
{
	enum { T_NAME, T_OP, T_GRID, T_BLOCK, T_REGS, T_SHARED, T_USES, T_ELIGIBLE, T_TC, T_CALLS, T_TOTAL, T_MEAN, T_MAX, T_MIN,
	       T_BLOCKS, T_OCC, T_N };
	static const struct column tb[T_N] = {
		[T_NAME] = {"name", "Name", "kernel", CELL_STR, UNIT_NONE, COLUMN_WIDE},
		[T_OP] = {"operator", "Operator", "launching op or N/A", CELL_STR},
		[T_GRID] = {"grid", "Grid", "grid", CELL_STR},
		[T_BLOCK] = {"block", "Block", "block", CELL_STR},
		[T_REGS] = {"registers_per_thread", "Register Per Thread", "registers", CELL_I64},
		[T_SHARED] = {"shared_memory", "Shared Memory", "bytes", CELL_I64},
		[T_USES] = {"kernel_uses_tensor_cores", "Kernel Uses Tensor Cores", "Yes or No", CELL_STR},
		[T_ELIGIBLE] = {"op_is_tensor_cores_eligible", "Op is Tensor Cores eligible", "Yes or No", CELL_STR},
		[T_TC] = {"tensor_cores_used", "Tensor Cores Used", "Yes or No", CELL_STR},
		[T_CALLS] = {"calls", "Calls", "how often it ran", CELL_I64},
		[T_TOTAL] = {"total_duration_us", "Total Duration (us)", "rounded to us", CELL_I64, UNIT_US},
		[T_MEAN] = {"mean_duration_us", "Mean Duration (us)", "rounded to us", CELL_I64, UNIT_US},
		[T_MAX] = {"max_duration_us", "Max Duration (us)", "rounded to us", CELL_I64, UNIT_US},
		[T_MIN] = {"min_duration_us", "Min Duration (us)", "rounded to us", CELL_I64, UNIT_US},
		[T_BLOCKS] = {"mean_blocks_per_sm", "Mean Blocks Per SM", "weighted by duration", CELL_F64, UNIT_NONE, 0, 2},
		[T_OCC] = {"mean_est_achieved_occupancy_pct", "Mean Est. Achieved Occupancy (%)", "weighted by duration", CELL_F64, UNIT_NONE,
		           0, 2},
	};
	unsigned at[T_N];
	for (unsigned c = 0; c < T_N; c++) {
		bool only_op = c >= T_OP && c <= T_ELIGIBLE;
		bool skip = (only_op && g->by == BY_NAME) || (c == T_TC && g->by != BY_NAME) || (c == T_BLOCKS && !blocks) ||
		            (c == T_OCC && !occupancy);
		at[c] = skip ? UINT32_MAX : table_column(out, &tb[c]);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const struct group *x = &g->v[i];
		struct str name = profile_str(g->p, x->key.name);
		struct str uses = name_is(g->p, x->key.name, NAME_TC_LISTED) ? STR("Yes") : STR("No");
		table_row(out);
		table_set_str(out, at[T_NAME], name);
		if (g->by == BY_NAME) {
			table_set_str(out, at[T_TC], uses);
		} else {
			table_set_str(out, at[T_OP], x->key.op ? profile_str(g->p, x->key.op) : STR("N/A"));
			put_triple(out, at[T_GRID], x->key.grid, "[%d, %d, %d]");
			put_triple(out, at[T_BLOCK], x->key.block, "[%d, %d, %d]");
			if (x->key.registers != INT32_MIN)
				table_set_i64(out, at[T_REGS], x->key.registers);
			if (x->key.shared_bytes != INT32_MIN)
				table_set_i64(out, at[T_SHARED], x->key.shared_bytes);
			table_set_str(out, at[T_USES], uses);
			table_set_str(out, at[T_ELIGIBLE], x->op_eligible ? STR("Yes") : STR("No"));
		}
		table_set_i64(out, at[T_CALLS], (int64_t)x->calls);
		table_set_i64(out, at[T_TOTAL], round_us(x->total));
		table_set_i64(out, at[T_MEAN], round_even((double)x->total / (double)x->calls / 1000.0));
		table_set_i64(out, at[T_MAX], round_us(x->max));
		table_set_i64(out, at[T_MIN], round_us(x->min));
		if (blocks)
			table_set_f64(out, at[T_BLOCKS], mean_or_zero(x->blocks, x->blocks_ns));
		if (occupancy)
			table_set_f64(out, at[T_OCC], mean_or_zero(x->occupancy, x->occupancy_ns));
	}
	return table_sort(out, STR("total_duration_us"), true, e);
}

static int kernels_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct groups g = {.p = p, .by = (enum grouping)args->variant->by, .plugin = args->compat != NULL};
	g.has_device = args->device != NULL;
	if (g.has_device && !str_to_i64(str_from(args->device), &g.device))
		return err_set(e, ERR_USAGE, "--device=%s: a GPU number was expected", args->device);
	struct optree *t = optree_new(p, args->compat ? OPTREE_TB_PLUGIN : OPTREE_DEFAULT);
	g.t = t;
	intern_init(&g.keys);
	collect(&g, &w, args->compat != NULL);
	bool blocks = false, occupancy = false;
	for (uint32_t i = 0; i < g.n; i++) {
		blocks |= g.v[i].has_blocks;
		occupancy |= g.v[i].has_occupancy;
	}
	int rc = 0;
	if (!g.n && (g.has_device || !w.all))
		rc = err_set(e, ERR_DATA, "no kernel of the trace is on that device or in those steps");
	else if (!g.n)
		rc = err_set(e, ERR_DATA, "the input holds no kernels; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
	else if (args->compat)
		rc = put_tb_plugin(out, &g, blocks, occupancy, e);
	else
		rc = put_default(out, &g, blocks, occupancy, e);
	groups_release(&g);
	optree_free(t);
	return rc;
}

static const struct report_variant kernels_variants[] = {
	{.group_by = "name", .by = BY_NAME},
	{.group_by = "op", .by = BY_OP},
	{.group_by = "launch", .by = BY_LAUNCH},
	{.group_by = "instance", .run = kernel_calls, .needs = PASS_OPS | PASS_STEPS, .takes = REPORT_LIMIT}, /* kernels one by one have their ops and steps */
	{.compat = "tb-plugin", .group_by = "name", .by = BY_NAME},
	{.compat = "tb-plugin", .group_by = "op", .by = BY_LAUNCH}, /* the plugin's second grouping is by op and launch properties together */
	{.compat = "tb-plugin", .group_by = "launch", .by = BY_LAUNCH},
	{.compat = "dlprof", .group_by = "op", .run = kernels_dlprof_kernel, .needs = PASS_OPS},
	{.compat = "dlprof", .group_by = "instance", .run = kernels_dlprof_iteration, .needs = PASS_OPS},
	{0},
};

const struct report report_kernels = {
	.name = "kernels",
	.title = "Kernels",
	.also = "kernel gpu cuda",
	.help = "Which kernels took the device's time, how often they ran and how evenly, and whether they use Tensor Cores. Copies and "
	        "sets of memory are no kernels. --group-by=op tells apart the operators that launched them, each the innermost as in `operators`, "
	        "--group-by=launch also the grid, block, registers and shared memory; --group-by=instance lists each launch with its step, this "
	        "operator and the op of the model that it belongs to: the outermost, with its place, as in `ops`. --compat=dlprof gives DLProf's kernel "
	        "report (--group-by=op) and iteration report (--group-by=instance).",
	.variants = kernels_variants,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS | REPORT_DEVICE,
	.run = kernels_run,
};
