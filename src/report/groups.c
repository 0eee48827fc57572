/* Time by group of ops. */
#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "base/mem.h"
#include "report/parts/group_tree.h"

/* The steps of the window by their times on the host, by which instances are counted; without steps, one step that holds all time. */
struct cuts {
	int64_t *start, *end;
	uint32_t n;
};

static struct cuts find_cuts(const struct profile *p, const struct window *w)
{
	const struct steps *s = p->steps;
	unsigned n = s->whole_trace ? 0 : s->total;
	struct cuts c = {NEW_ARRAY((size_t)n + 1, int64_t), NEW_ARRAY((size_t)n + 1, int64_t), 0};
	for (unsigned i = 0; i < n; i++) {
		if (!window_has(w, s->v[i].host_start_ns))
			continue;
		c.start[c.n] = s->v[i].host_start_ns;
		c.end[c.n++] = s->v[i].host_end_ns;
	}
	if (!c.n) {
		c.start[0] = INT64_MIN;
		c.end[0] = INT64_MAX;
		c.n = 1;
	}
	return c;
}

enum {
	GROUPS_DEPTH, GROUPS_GROUP, GROUPS_PATH, GROUPS_CALLS, GROUPS_OPS, GROUPS_GPU, GROUPS_SHARE, GROUPS_GPU_MEAN, GROUPS_GPU_MIN, GROUPS_GPU_MAX, GROUPS_CPU,
	GROUPS_CPU_MEAN, GROUPS_OVERHEAD, GROUPS_IDLE, GROUPS_ITERATIONS, GROUPS_ELIGIBLE, GROUPS_USING
};

static const struct section groups_section = {COLUMNS(
	[GROUPS_DEPTH] = {COLUMN(NUMBER, "depth", "Depth", "In the tree; 0 = all ops.", .flags = COLUMN_TREE)},
	[GROUPS_GROUP] = {COLUMN(TEXT, "group", "Group", "The last part of the path.", .flags = COLUMN_WIDE)},
	[GROUPS_PATH] = {COLUMN(TEXT, "path", "Path", "The path that its ops have in common.", .flags = COLUMN_DETAIL)},
	[GROUPS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "Calls of ops in it.")},
	[GROUPS_OPS] = {COLUMN(COUNT, "ops", "Ops", "Ops in it.", .flags = COLUMN_MINOR)},
	[GROUPS_GPU] = {COLUMN(NS, "gpu_ns", "GPU Busy", "Length of the union of the device work of all ops in it; several GPUs add up.", .flags = COLUMN_ANSWER)},
	[GROUPS_SHARE] = {COLUMN(PERCENT, "gpu_pct", "GPU %", "Share of the union of all device work. Groups that run at the same time may add up to more than the one "
	                         "around them.")},
	[GROUPS_GPU_MEAN] = {COLUMN(MEAN_NS, "mean_gpu_ns", "GPU / Step", "Mean over the steps in which it ran.", .flags = COLUMN_MINOR)},
	[GROUPS_GPU_MIN] = {COLUMN(NS, "min_gpu_ns", "GPU Min", "Of the step with least.", .flags = COLUMN_DETAIL)},
	[GROUPS_GPU_MAX] = {COLUMN(NS, "max_gpu_ns", "GPU Max", "Of the step with most.", .flags = COLUMN_DETAIL)},
	[GROUPS_CPU] = {COLUMN(NS, "cpu_ns", "CPU", "Length of the union of the ranges of its ops on the host.", .flags = COLUMN_ANSWER)},
	[GROUPS_CPU_MEAN] = {COLUMN(MEAN_NS, "mean_cpu_ns", "CPU / Step", "Mean over the steps in which it ran.", .flags = COLUMN_DETAIL)},
	[GROUPS_OVERHEAD] = {COLUMN(NS, "overhead_ns", "CPU Overhead", "Union of the parts of these ranges outside API calls.", .flags = COLUMN_ANSWER)},
	[GROUPS_IDLE] = {COLUMN(NS, "idle_ns", "GPU Idle", "Union of the gaps between the first and the last device work of each call.", .flags = COLUMN_ANSWER)},
	[GROUPS_ITERATIONS] = {COLUMN(COUNT, "steps", "Steps", "Steps in which it ran.", .flags = COLUMN_DETAIL)},
	[GROUPS_ELIGIBLE] = {COLUMN(COUNT, "tc_eligible_ops", "TC Eligible", "Ops in it that could use Tensor Cores.", .flags = COLUMN_MINOR)},
	[GROUPS_USING] = {COLUMN(COUNT, "tc_using_ops", "Using TC", "Of these, how many do.")},
)};

static void groups_own_row(struct table *t, const struct group *g, int64_t depth, struct str name, int64_t all, bool host)
{
	table_row(t);
	table_set_i64(t, GROUPS_DEPTH, depth);
	table_set_str_copy(t, GROUPS_GROUP, name);
	table_set_str_copy(t, GROUPS_PATH, g->name);
	table_set_i64(t, GROUPS_CALLS, (int64_t)g->calls);
	table_set_i64(t, GROUPS_OPS, g->ops);
	table_set_i64(t, GROUPS_GPU, g->time[OP_GPU].total);
	if (all)
		table_set_f64(t, GROUPS_SHARE, 100.0 * (double)g->time[OP_GPU].total / (double)all);
	table_set_i64(t, GROUPS_ITERATIONS, g->iterations);
	table_set_i64(t, GROUPS_ELIGIBLE, g->eligible);
	table_set_i64(t, GROUPS_USING, g->eligible_using_tc);
	if (g->iterations) {
		table_set_f64(t, GROUPS_GPU_MEAN, group_mean(g, OP_GPU));
		table_set_i64(t, GROUPS_GPU_MIN, g->time[OP_GPU].min);
		table_set_i64(t, GROUPS_GPU_MAX, g->time[OP_GPU].max);
	}
	if (!host)
		return;
	table_set_i64(t, GROUPS_CPU, g->time[OP_CPU].total);
	if (g->iterations)
		table_set_f64(t, GROUPS_CPU_MEAN, group_mean(g, OP_CPU));
	table_set_i64(t, GROUPS_OVERHEAD, g->time[OP_OVERHEAD].total);
	table_set_i64(t, GROUPS_IDLE, g->time[OP_IDLE].total);
}

/* In pre-order, siblings in the order in which they first ran. */
static void groups_own_rows(const struct group_tree *tree, struct table *t, bool host)
{
	uint32_t *child = NEW_ARRAY_RAW(tree->n, uint32_t), *next = NEW_ARRAY_RAW(tree->n, uint32_t);
	for (uint32_t g = 0; g < tree->n; g++)
		child[g] = GROUP_NONE;
	for (uint32_t g = tree->n; g-- > 2;) {
		next[g] = child[tree->v[g].parent];
		child[tree->v[g].parent] = g;
	}
	int64_t all = tree->v[0].time[OP_GPU].total;
	for (uint32_t g = tree->n > 1 ? 1 : GROUP_NONE; g != GROUP_NONE;) {
		if (tree->v[g].calls)
			groups_own_row(t, &tree->v[g], tree->v[g].depth, g == 1 ? STR("(all ops)") : tree->v[g].part, all, host);
		uint32_t to = child[g];
		while (to == GROUP_NONE && g > 1) {
			to = next[g];
			g = tree->v[g].parent;
		}
		g = to;
	}
	groups_own_row(t, &tree->v[0], 0, STR("(with API calls outside ops and unattributed work)"), all, host);
	mem_free(child);
	mem_free(next);
}

/* Whether the input says where in the model most ops are. */
static bool has_paths(const struct ops *o)
{
	uint32_t with = 0, without = 0;
	for (uint32_t i = 0; i < o->n_ops; i++)
		if (o->op[i].direction == DIR_FORWARD || o->op[i].direction == DIR_BACKWARD)
			++*(o->op[i].path_n > 1 ? &with : &without);
	return with >= without;
}

static void own_notes(struct table *t, const struct profile *p, const struct window *w, bool paths, uint32_t iterations)
{
	op_note_parts(t, p, w);
	table_note(t, "times of groups are unions, by step and GPU: what ran at the same time counts once, so that rows need not add up; %u step%s",
	           iterations, iterations == 1 ? "" : "s");
	if (!paths)
		table_warn(t, "the input names no modules, layers or ranges around most ops: these are grouped by direction and type. To record modules: %s",
		           recording_how(p, RECORD_MODULES));
}

static int groups_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct group_tree tree;
	if (args->outside)
		return err_set(e, ERR_USAGE, "--steps=outside: report groups cannot show what lies outside the steps, since its times are means of them: A..B, one step number or all was expected");
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct cuts c = find_cuts(p, &w);
	group_tree_init(&tree, p, true);
	group_tree_measure(&tree, p, &w, &(struct group_iterations){c.start, c.end, c.n}, NULL);
	section_start(&groups_section, args, 0, out);
	groups_own_rows(&tree, out, !p->durations_only);
	own_notes(out, p, &w, has_paths(p->ops), c.n);
	group_tree_release(&tree);
	mem_free(c.start);
	mem_free(c.end);
	return 0;
}

const struct report report_groups = {
	.name = "groups",
	.title = "Time by group of ops",
	.asks = ASKS_PART,
	.help = "The ops of `ops` as a tree: by the functions or modules that called them, the layers or ranges around them, and where the input "
	        "names none of these by direction and type. A group's time is the union over all ops in it, so that what runs at the same time "
	        "counts once; means are over steps.",
	.sections = (const struct section *const[]){&groups_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_OPS | PASS_STEPS,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = groups_run,
};
