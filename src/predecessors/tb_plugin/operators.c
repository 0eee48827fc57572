/* Time by operator (op_agg.py of the plugin). */
#include "analysis/recording.h"
#include "analysis/tree/optree.h"
#include "base/mem.h"
#include "base/round.h"
#include "predecessors/tb_plugin/rules.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/operator_keys.h"

enum { T_NAME, T_SHAPE, T_CALLS, T_DEV_SELF, T_DEV_TOTAL, T_HOST_SELF, T_HOST_TOTAL,
       T_ELIGIBLE, T_TC_SELF, T_TC_TOTAL, T_STACK, T_HAS_STACK, T_N };

static const struct column operators_columns[T_N] = {
	[T_NAME] = {.id = "name", .title = "Name", .help = "operator", .type = CELL_STR},
	[T_SHAPE] = {.id = "input_shape", .title = "Input Shape", .help = "dimensions of its inputs", .type = CELL_STR, .flags = COLUMN_WIDE},
	[T_CALLS] = {.id = "calls", .title = "Calls", .help = "how often it ran", .type = CELL_I64},
	[T_DEV_SELF] = {.id = "device_self_duration", .title = "Device Self Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_DEV_TOTAL] = {.id = "device_total_duration", .title = "Device Total Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_HOST_SELF] = {.id = "host_self_duration", .title = "Host Self Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_HOST_TOTAL] = {.id = "host_total_duration", .title = "Host Total Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_ELIGIBLE] = {.id = "tc_eligible", .title = "Tensor Cores Eligible", .help = "Yes or No", .type = CELL_STR},
	[T_TC_SELF] = {.id = "tc_self_ratio", .title = "Tensor Cores Self(%)", .help = "TC time of own kernels / own device time", .type = CELL_F64, .digits = 2},
	[T_TC_TOTAL] = {.id = "tc_total_ratio", .title = "Tensor Cores Total(%)", .help = "the same with the ops inside", .type = CELL_F64, .digits = 2},
	[T_STACK] = {.id = "call_stack", .title = "Call Stack", .help = "Python frames", .type = CELL_STR, .flags = COLUMN_WIDE},
	[T_HAS_STACK] = {.id = "has_call_stack", .title = "Has Call Stack", .help = "whether stacks were recorded", .type = CELL_BOOL},
};

struct op_row {
	uint64_t calls;
	int64_t dev_self, dev_total, host_self, host_total, tc_self, tc_total;
	bool tc_eligible, has_stack;
	uint32_t first, first_last; /* the node that decides tc_eligible, and the last node under it */
};

struct op_rows {
	const struct profile *p;
	const struct optree *t;
	struct operator_keys keys;
	struct op_row *v;          /* of each row of keys */
	uint32_t n, cap;
};

/* Node -> the last one under it, or itself. */
static uint32_t *last_nodes(const struct optree *t)
{
	uint32_t *last = NEW_ARRAY_RAW(t->n, uint32_t);
	for (uint32_t n = 0; n < t->n; n++)
		last[n] = n;
	for (uint32_t n = t->n; n-- > 0;)
		if (t->parent[n] != ROW_NONE && last[t->parent[n]] < last[n])
			last[t->parent[n]] = last[n];
	return last;
}

/* Of ops with one name the first decides that the plugin's walk of the tree ends with, children before parents. */
static void add_eligible(struct op_row *x, const struct optree *t, uint32_t node, const uint32_t *last)
{
	if (x->calls == 1 || last[node] < x->first_last || (last[node] == x->first_last && node > x->first)) {
		x->first = node;
		x->first_last = last[node];
		x->tc_eligible = t->tc_eligible[node];
	}
}

/* A call inside another of its row counts again in the row's totals. */
static void operators_collect(struct op_rows *g, const struct window *w)
{
	const struct optree *t = g->t;
	uint32_t *last = last_nodes(t);
	for (uint32_t n = 0; n < t->n; n++) {
		uint32_t span = t->span[n];
		if (t->kind[n] != NODE_OP || !window_has(w, g->p->span.start_ns[span]))
			continue;
		uint32_t row = operator_keys_row(&g->keys, span);
		if (row == g->n) {
			g->n++;
			MEM_GROW(g->v, g->cap, g->n);
			g->v[row] = (struct op_row){0};
		}
		struct op_row *x = &g->v[row];
		x->calls++;
		x->dev_self += t->dev_self[n];
		x->dev_total += t->dev_total[n];
		x->host_self += t->host_self[n];
		x->host_total += optree_host_total(t, g->p, n);
		x->tc_self += optree_sum(t->tc_self, n);
		x->tc_total += optree_sum(t->tc_total, n);
		x->has_stack |= profile_arg_id(g->p, g->p->span.args[span], ARG_CALL_STACK) != 0;
		add_eligible(x, t, n, last);
	}
	mem_free(last);
}

static double ratio_pct(int64_t part, int64_t whole)
{
	return whole > 0 ? round_digits(percent((double)part, (double)whole), 2) : 0;
}

static int tb_operators_put(struct table *out, const struct op_rows *g, struct err *e)
{
	bool device = g->p->gpu_op.rows.n > 0, both = g->keys.by == OPERATORS_BY_SHAPES_AND_STACK;
	bool shapes = both || g->keys.by == OPERATORS_BY_SHAPE, stacks = both || g->keys.by == OPERATORS_BY_STACK;
	unsigned at[T_N];
	for (unsigned c = 0; c < T_N; c++) {
		bool skip = (c == T_SHAPE && !shapes) || (c == T_STACK && !stacks) || (!device && (c == T_DEV_SELF || c == T_DEV_TOTAL));
		at[c] = skip ? UINT32_MAX : table_column(out, &operators_columns[c]);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const struct op_row *x = &g->v[i];
		const struct operator_key *key = &g->keys.v[i];
		table_row(out);
		table_set_str(out, at[T_NAME], profile_str(g->p, key->name));
		uint32_t dims = both ? key->shapes : key->detail;
		if (shapes)
			table_set_str(out, at[T_SHAPE], dims ? profile_str(g->p, dims) : STR("[]"));
		table_set_i64(out, at[T_CALLS], (int64_t)x->calls);
		table_set_i64(out, at[T_HOST_SELF], round_us(x->host_self));
		table_set_i64(out, at[T_HOST_TOTAL], round_us(x->host_total));
		if (stacks)
			operator_keys_put_stack(out, at[T_STACK], &g->keys, key->detail);
		table_set_bool(out, at[T_HAS_STACK], x->has_stack);
		if (device) {
			table_set_i64(out, at[T_DEV_SELF], round_us(x->dev_self));
			table_set_i64(out, at[T_DEV_TOTAL], round_us(x->dev_total));
		}
		table_set_str(out, at[T_ELIGIBLE], x->tc_eligible ? STR("Yes") : STR("No"));
		table_set_f64(out, at[T_TC_SELF], ratio_pct(x->tc_self, x->dev_self));
		table_set_f64(out, at[T_TC_TOTAL], ratio_pct(x->tc_total, x->dev_total));
	}
	return table_sort(out, device ? STR("device_self_duration") : STR("host_self_duration"), true, e);
}

int tb_operators(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct arena a = {0};
	struct window w;
	if (tb_window(p, args, &a, &w, e) < 0)
		return -1;
	struct optree *t = optree_new(p, &tb_optree);
	struct op_rows g = {.p = p, .t = t};
	operator_keys_init(&g.keys, p, (enum operators_by)args->variant->by);
	operators_collect(&g, &w);
	int rc = 0;
	if (!g.n && t->unattributed_ops == 0)
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	else
		rc = tb_operators_put(out, &g, e);
	operator_keys_release(&g.keys);
	mem_free(g.v);
	optree_free(t);
	arena_release(&a);
	return rc;
}
