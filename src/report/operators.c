/* Time by operator: on the host and on the device, own and with all that it called. */
#include "analysis/recording.h"
#include "analysis/tree/direction.h"
#include "analysis/tree/optree.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/window.h"
#include "report/parts/operator_keys.h"

struct operators_group {
	uint64_t calls;
	int64_t dev_self, dev_total, host_self, host_total, tc_self, tc_total, tc_unknown_self, tc_unknown_total;
	int64_t dev_of[DIRECTIONS], host_of[DIRECTIONS]; /* by line: the parts of dev_self and host_self */
	bool tc_eligible;
	uint32_t open;          /* calls of this row around the current node */
};

struct operators_groups {
	const struct profile *p;
	const struct optree *t;
	enum operators_by by;
	struct operator_keys keys;
	struct operators_group *v;        /* by row of `keys` */
	uint32_t n, cap;
	struct directions *dir; /* by line */
};

static void groups_release(struct operators_groups *g)
{
	operator_keys_release(&g->keys);
	directions_free(g->dir);
	mem_free(g->v);
}

static struct operators_group *operators_group_of(struct operators_groups *g, uint32_t span)
{
	uint32_t row = operator_keys_row(&g->keys, span);
	if (row == g->n) {
		g->n++;
		MEM_GROW(g->v, g->cap, g->n);
		g->v[row] = (struct operators_group){0};
	}
	return &g->v[row];
}

/* Work of an op without a direction counts as forward. */
static enum direction direction_at(const struct operators_groups *g, uint32_t node)
{
	enum direction d = g->dir->span[g->t->span[node]];
	return d == DIR_OTHER ? DIR_FORWARD : d;
}

/* The nodes around the current node, with their rows. Nodes come in pre-order. */
struct path {
	struct path_node {
		uint32_t node, row;   /* ROW_NONE: it has no row */
		uint32_t op, op_row;  /* the op for which its own host time counts; ROW_NONE = none, or one without a row */
	} *v;
	uint32_t n, cap;
};

static void path_up_to(struct path *at, struct operators_groups *g, uint32_t parent)
{
	while (at->n && at->v[at->n - 1].node != parent) {
		struct path_node *top = &at->v[--at->n];
		if (top->row != ROW_NONE)
			g->v[top->row].open--;
	}
}

static void path_down(struct path *at, struct operators_groups *g, struct path_node x)
{
	MEM_PUSH(at->v, at->n, at->cap, x);
	if (x.row != ROW_NONE)
		g->v[x.row].open++;
}

/* The node n that is no op, below the path. In a table of ops alone an annotation, a step or an optimizer inside an op has no row: its own time counts for the op, as
 * the work that it launched does. A range that outlives the op around it gives nothing, since its time was not subtracted from the op's. */
static struct path_node operators_inside(const struct path *at, const struct profile *p, const struct optree *t, uint32_t n)
{
	struct path_node x = {n, ROW_NONE, ROW_NONE, ROW_NONE};
	const struct path_node *up = at->n ? &at->v[at->n - 1] : NULL;
	if (up && span_end(p, t->span[n]) <= span_end(p, t->span[up->node])) {
		x.op = up->op;
		x.op_row = up->op_row;
	}
	return x;
}

static void operators_add_own(struct operators_groups *g, const struct path_node *x)
{
	if (x->op_row == ROW_NONE)
		return;
	struct operators_group *row = &g->v[x->op_row];
	row->host_self += g->t->host_self[x->node];
	if (g->dir)
		row->host_of[direction_at(g, x->op)] += g->t->host_self[x->node];
}

/* A call inside a call of the same row is already in that call's total. */
static void operators_add_totals(struct operators_group *x, const struct profile *p, const struct optree *t, uint32_t node)
{
	if (x->open)
		return;
	x->dev_total += t->dev_total[node];
	x->host_total += optree_host_total(t, p, node);
	x->tc_total += optree_sum(t->tc_total, node);
	x->tc_unknown_total += optree_sum(t->tc_unknown_total, node);
}

static void operators_collect_(struct operators_groups *g, const struct window *w)
{
	const struct optree *t = g->t;
	struct path path = {0};
	for (uint32_t n = 0; n < t->n; n++) {
		uint32_t span = t->span[n];
		path_up_to(&path, g, t->parent[n]);
		if (t->kind[n] != NODE_OP || !window_has(w, g->p->span.start_ns[span])) {
			struct path_node other = t->kind[n] == NODE_OP ? (struct path_node){n, ROW_NONE, n, ROW_NONE} : operators_inside(&path, g->p, t, n);
			operators_add_own(g, &other);
			path_down(&path, g, other);
			continue;
		}
		struct operators_group *x = operators_group_of(g, span);
		const struct path_node op = {n, (uint32_t)(x - g->v), n, (uint32_t)(x - g->v)};
		x->calls++;
		x->dev_self += t->dev_self[n];
		x->tc_self += optree_sum(t->tc_self, n);
		x->tc_unknown_self += optree_sum(t->tc_unknown_self, n);
		x->tc_eligible |= t->tc_eligible[n];
		operators_add_totals(x, g->p, t, n);
		operators_add_own(g, &op);
		if (g->dir)
			x->dev_of[direction_at(g, n)] += t->dev_self[n];
		path_down(&path, g, op);
	}
	mem_free(path.v);
}

/* Columns of the three directions stand in the order of enum direction. */
enum {
	OPERATORS_NAME, OPERATORS_SHAPE, OPERATORS_STACK, OPERATORS_LINE, OPERATORS_CALLS, OPERATORS_DEV_SELF, OPERATORS_DEV_SELF_PCT, OPERATORS_DEV_FORWARD,
	OPERATORS_DEV_BACKWARD, OPERATORS_DEV_OPTIMIZER, OPERATORS_DEV_TOTAL, OPERATORS_HOST_SELF, OPERATORS_HOST_FORWARD, OPERATORS_HOST_BACKWARD, OPERATORS_HOST_OPTIMIZER,
	OPERATORS_HOST_TOTAL, OPERATORS_ELIGIBLE, OPERATORS_TC_SELF, OPERATORS_TC_TOTAL
};

/* Ops on one line contain each other: totals by line would count the same time again and again. */
const struct section operators_section = {COLUMNS(
	[OPERATORS_NAME] = {COLUMN(TEXT, "name", "Operator", "name of the op as the framework recorded it"), .not_by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_SHAPE] = {COLUMN(TEXT, "input_shape", "Input shape", "dimensions of its inputs", .flags = COLUMN_WIDE | COLUMN_GROUP), .by = BY(OPERATORS_BY_SHAPE)},
	[OPERATORS_STACK] = {COLUMN(TEXT, "call_stack", "Call stack", "Python frames, innermost first; of the forward op for ops of the backward pass",
	                            .flags = COLUMN_WIDE | COLUMN_STACK | COLUMN_GROUP), .by = BY(OPERATORS_BY_STACK)},
	[OPERATORS_LINE] = {COLUMN(TEXT, "python_line", "Python line", "innermost frame outside torch and installed packages", .flags = COLUMN_STACK | COLUMN_GROUP),
	                           .by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran; of the backward pass, nodes of autograd's graph and what these call",
	                            .flags = COLUMN_ANSWER)},
	[OPERATORS_DEV_SELF] = {COLUMN(NS, "device_self_ns", "Device self", "device time of what it launched itself; overlapping work counts twice", .flags = COLUMN_ANSWER),
	                               .when = WHEN_DEVICE},
	[OPERATORS_DEV_SELF_PCT] = {COLUMN(PERCENT, "device_self_pct", "Device %", "device self time / device time of all rows"), .when = WHEN_DEVICE},
	[OPERATORS_DEV_FORWARD] = {COLUMN(NS, "forward_device_self_ns", "Fwd device", "the part of device self of the forward pass, and of ops of no pass",
	                                  .flags = COLUMN_ANSWER), .by = BY(OPERATORS_BY_LINE), .when = WHEN_DEVICE},
	[OPERATORS_DEV_BACKWARD] = {COLUMN(NS, "backward_device_self_ns", "Bwd device", "the part of device self of the backward of what the line called",
	                                   .flags = COLUMN_ANSWER), .by = BY(OPERATORS_BY_LINE), .when = WHEN_DEVICE},
	[OPERATORS_DEV_OPTIMIZER] = {COLUMN(NS, "optimizer_device_self_ns", "Opt device", "the part of device self of the optimizer"), .by = BY(OPERATORS_BY_LINE),
	                                    .when = WHEN_DEVICE},
	[OPERATORS_DEV_TOTAL] = {COLUMN(NS, "device_total_ns", "Device total", "device time of what it and the ops inside it launched; a call inside another of its row "
	                                "counts once"), .not_by = BY(OPERATORS_BY_LINE), .when = WHEN_DEVICE},
	[OPERATORS_HOST_SELF] = {COLUMN(NS, "host_self_ns", "Host self", "host time less the ops and API calls inside it", .flags = COLUMN_ANSWER)},
	[OPERATORS_HOST_FORWARD] = {COLUMN(NS, "forward_host_self_ns", "Fwd host", "the part of host self of the forward pass, and of ops of no pass",
	                                   .flags = COLUMN_ANSWER), .by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_HOST_BACKWARD] = {COLUMN(NS, "backward_host_self_ns", "Bwd host", "the part of host self of the backward of what the line called",
	                                    .flags = COLUMN_ANSWER), .by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_HOST_OPTIMIZER] = {COLUMN(NS, "optimizer_host_self_ns", "Opt host", "the part of host self of the optimizer"), .by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_HOST_TOTAL] = {COLUMN(NS, "host_total_ns", "Host total", "host time from its start to its end; a call inside another of its row counts once",
	                                 .flags = COLUMN_ANSWER), .not_by = BY(OPERATORS_BY_LINE)},
	[OPERATORS_ELIGIBLE] = {COLUMN(YES_NO, "tc_eligible", "TC eligible", "could use Tensor Cores, by its name or by what it launched", .flags = COLUMN_MINOR),
	                               .not_by = BY(OPERATORS_BY_LINE), .when = WHEN_DEVICE},
	[OPERATORS_TC_SELF] = {COLUMN(PERCENT, "tc_self_pct", "TC self %", "share of device self time in kernels that use Tensor Cores; empty = unknown"),
	                              .when = WHEN_DEVICE},
	[OPERATORS_TC_TOTAL] = {COLUMN(PERCENT, "tc_total_pct", "TC total %", "share of device total time in kernels that use Tensor Cores; empty = unknown",
	                               .flags = COLUMN_MINOR), .not_by = BY(OPERATORS_BY_LINE), .when = WHEN_DEVICE},
)};

static const char *const titles[] = {
	[OPERATORS_BY_NAME] = "Time by operator",
	[OPERATORS_BY_SHAPE] = "Time by operator and input shape",
	[OPERATORS_BY_STACK] = "Time by operator and call stack",
	[OPERATORS_BY_LINE] = "Time by function of Python, with its recorded line",
};

static void put_key(struct table *out, const struct operators_groups *g, uint32_t row)
{
	const struct operator_key *key = &g->keys.v[row];
	if (g->by == OPERATORS_BY_LINE)
		table_set_str_copy(out, OPERATORS_LINE, key->detail ? intern_get(&g->keys.lines, key->detail) : STR("(no line known)"));
	else
		table_set_str(out, OPERATORS_NAME, profile_str(g->p, key->name));
	if (g->by == OPERATORS_BY_SHAPE && key->detail)
		table_set_str(out, OPERATORS_SHAPE, profile_str(g->p, key->detail));
	if (g->by == OPERATORS_BY_STACK)
		operator_keys_put_stack(out, OPERATORS_STACK, &g->keys, key->detail);
}

static void operators_put_row(struct table *out, const struct operators_groups *g, uint32_t row, int64_t all)
{
	const struct operators_group *x = &g->v[row];
	table_row(out);
	put_key(out, g, row);
	table_set_i64(out, OPERATORS_CALLS, (int64_t)x->calls);
	table_set_i64(out, OPERATORS_HOST_SELF, x->host_self);
	table_set_i64(out, OPERATORS_HOST_TOTAL, x->host_total);
	table_set_i64(out, OPERATORS_DEV_SELF, x->dev_self);
	table_set_f64(out, OPERATORS_DEV_SELF_PCT, percent((double)x->dev_self, (double)all));
	table_set_i64(out, OPERATORS_DEV_TOTAL, x->dev_total);
	table_set_bool(out, OPERATORS_ELIGIBLE, x->tc_eligible);
	if (!x->tc_unknown_self)
		table_set_f64(out, OPERATORS_TC_SELF, percent((double)x->tc_self, (double)x->dev_self));
	if (!x->tc_unknown_total)
		table_set_f64(out, OPERATORS_TC_TOTAL, percent((double)x->tc_total, (double)x->dev_total));
	for (unsigned d = DIR_FORWARD; d <= DIR_OPTIMIZER; d++) {
		table_set_i64(out, OPERATORS_HOST_FORWARD + d, x->host_of[d]);
		table_set_i64(out, OPERATORS_DEV_FORWARD + d, x->dev_of[d]);
	}
}

static int operators_put(struct table *out, const struct operators_groups *g, const struct report_args *args, const struct window *w, struct err *e)
{
	bool device = g->p->gpu_op.rows.n > 0;
	int64_t all = 0, attributed = 0, outside = 0, unknown = 0;
	uint64_t outside_ops = 0;
	for (uint32_t i = 0; i < g->p->gpu_op.rows.n; i++) {
		if (!window_has_gpu(w, g->p, i))
			continue;
		all += g->p->gpu_op.dur_ns[i];
		uint32_t node = g->t->gpu_node[i];
		if (node == ROW_NONE || g->t->kind[node] != NODE_OP) {
			outside += g->p->gpu_op.dur_ns[i];
			outside_ops++;
		}
	}
	out->title = titles[g->by];
	section_start(&operators_section, args, device ? WHEN_DEVICE : 0, out);
	for (unsigned d = DIR_FORWARD; d <= DIR_OPTIMIZER && device; d++)
		out->data[OPERATORS_HOST_FORWARD + d].col.flags = COLUMN_DETAIL;
	for (uint32_t i = 0; i < g->n; i++) {
		attributed += g->v[i].dev_self;
		unknown += g->v[i].tc_unknown_self;
		operators_put_row(out, g, i, all);
	}
	if (outside_ops) {
		table_row(out);
		table_set_str(out, g->by == OPERATORS_BY_LINE ? OPERATORS_LINE : OPERATORS_NAME, STR("(unattributed)"));
		table_set_i64(out, OPERATORS_DEV_SELF, outside);
		table_set_f64(out, OPERATORS_DEV_SELF_PCT, percent((double)outside, (double)all));
		table_set_i64(out, OPERATORS_DEV_TOTAL, outside);
	}
	int rc;
	if (device) {
		table_note(out, "device work %lld ns = attributed to operators %lld + unattributed %lld (%llu device events outside any op)",
		           (long long)all, (long long)attributed, (long long)outside, (unsigned long long)outside_ops);
		if (unknown)
			table_note(out, "no TC share where kernels were used whose name does not tell (%lld ns in all): report kernels lists them",
			           (long long)unknown);
		rc = table_sort(out, STR("device_self_ns"), true, e);
	} else {
		table_warn(out, "the trace holds no device work: times are of the host");
		rc = table_sort(out, STR("host_self_ns"), true, e);
	}
	if (w->all && !g->n)
		table_warn(out, "the input holds no framework ops; to record them: %s", recording_how(g->p, RECORD_OPS));
	if (g->keys.stacks && stacks_from_forward(g->keys.stacks))
		table_note(out, "%llu ops of the backward pass have the stack of their forward op; they are nodes of autograd's graph, of which a call can have several, and count as calls, too",
		           (unsigned long long)stacks_from_forward(g->keys.stacks));
	if (g->keys.stacks && !stacks_any(g->keys.stacks))
		table_warn(out, "the input holds no Python stacks; to record them: %s", recording_how(g->p, RECORD_STACKS));
	if (g->t->folded)
		table_note(out, "%llu ops were folded into a parent of the same name", (unsigned long long)g->t->folded);
	return rc;
}

int operators_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct operators_groups g = {.p = p, .by = (enum operators_by)args->variant->by};
	struct optree *t = optree_new(p, &optree_own);
	g.t = t;
	operator_keys_init(&g.keys, p, g.by);
	if (g.by == OPERATORS_BY_LINE)
		g.dir = directions_new(p);
	operators_collect_(&g, &w);
	int rc = 0;
	if (!g.n && t->unattributed_ops == 0)
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	else
		rc = operators_put(out, &g, args, &w, e);
	groups_release(&g);
	optree_free(t);
	return rc;
}

static const struct report_variant operators_variants[] = {
	{.group_by = "name", .by = OPERATORS_BY_NAME, .ignores = LEFT_FLOWS | LEFT_AUX_IDS | LEFT_FRAMES},
	{.group_by = "shape", .by = OPERATORS_BY_SHAPE, .ignores = LEFT_FLOWS | LEFT_AUX_IDS | LEFT_FRAMES},
	{.group_by = "stack", .by = OPERATORS_BY_STACK},
	{.group_by = "line", .by = OPERATORS_BY_LINE},
	{0},
};

const struct report report_operators = {
	.name = "operators",
	.title = "Time by operator",
	.also = "operator op",
	.help = "Which framework ops took the time, on the host and on the device. 'Self' leaves out the ops inside, 'total' has them "
	        "in. --group-by=line sums own times over the lines of your Python code, the forward pass, the backward of what a line "
	        "called and the optimizer apart. Rows of the backward pass are the nodes of autograd's graph, under the names that it gives them, of which a "
	        "forward call can have several. Device time is given to the op that launched the work; what no op launched is in the row (unattributed), so that "
	        "the column device_self_ns adds up to all device work of the trace.",
	.variants = operators_variants,
	.sections = (const struct section *const[]){&operators_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_OP_IDS,
	.run = operators_run,
};
