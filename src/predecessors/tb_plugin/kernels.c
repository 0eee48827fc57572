/* Kernels (kernel_parser.py of the plugin). */
#include "base/round.h"
#include "op/kernels.h"
#include "predecessors/tb_plugin/rules.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/kernel_groups.h"

enum { T_NAME, T_OP, T_GRID, T_BLOCK, T_REGS, T_SHARED, T_USES, T_ELIGIBLE, T_TC, T_CALLS, T_TOTAL, T_MEAN, T_MAX, T_MIN,
       T_BLOCKS, T_OCC, T_N };

static const struct column kernels_columns[T_N] = {
	[T_NAME] = {.id = "name", .title = "Name", .help = "kernel", .type = CELL_STR, .flags = COLUMN_WIDE},
	[T_OP] = {.id = "operator", .title = "Operator", .help = "launching op or N/A", .type = CELL_STR},
	[T_GRID] = {.id = "grid", .title = "Grid", .help = "grid", .type = CELL_STR},
	[T_BLOCK] = {.id = "block", .title = "Block", .help = "block", .type = CELL_STR},
	[T_REGS] = {.id = "registers_per_thread", .title = "Register Per Thread", .help = "registers", .type = CELL_I64},
	[T_SHARED] = {.id = "shared_memory", .title = "Shared Memory", .help = "bytes", .type = CELL_I64},
	[T_USES] = {.id = "kernel_uses_tensor_cores", .title = "Kernel Uses Tensor Cores", .help = "Yes or No", .type = CELL_STR},
	[T_ELIGIBLE] = {.id = "op_is_tensor_cores_eligible", .title = "Op is Tensor Cores eligible", .help = "Yes or No", .type = CELL_STR},
	[T_TC] = {.id = "tensor_cores_used", .title = "Tensor Cores Used", .help = "Yes or No", .type = CELL_STR},
	[T_CALLS] = {.id = "calls", .title = "Calls", .help = "how often it ran", .type = CELL_I64},
	[T_TOTAL] = {.id = "total_duration_us", .title = "Total Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_MEAN] = {.id = "mean_duration_us", .title = "Mean Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_MAX] = {.id = "max_duration_us", .title = "Max Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_MIN] = {.id = "min_duration_us", .title = "Min Duration (us)", .help = "rounded to us", .type = CELL_I64, .unit = UNIT_US},
	[T_BLOCKS] = {.id = "mean_blocks_per_sm", .title = "Mean Blocks Per SM", .help = "weighted by duration", .type = CELL_F64, .digits = 2},
	[T_OCC] = {.id = "mean_est_achieved_occupancy_pct", .title = "Mean Est. Achieved Occupancy (%)", .help = "weighted by duration", .type = CELL_F64, .digits = 2},
};

/* Steps and ranges of the user's are named, too. */
static uint32_t kernels_op(const struct optree *t, const struct profile *p, uint32_t gpu)
{
	uint32_t node = t->gpu_node[gpu];
	return node == ROW_NONE ? 0 : p->span.name[t->span[node]];
}

static double kernels_blocks(const struct profile *p, uint32_t launch)
{
	return p->launch.blocks_per_sm[launch];
}

static double kernels_occupancy(const struct profile *p, uint32_t launch)
{
	return p->launch.occupancy_pct[launch];
}

static const struct kernel_rules kernels_rules = {.op = kernels_op, .blocks_per_sm = kernels_blocks, .occupancy_pct = kernels_occupancy};

/* Calls without a value weigh as much as others. */
static double mean_or_zero(double sum, int64_t ns)
{
	return ns > 0 ? round_digits(sum / ((double)ns / 1000), 2) : 0;
}

static int tb_kernels_put(struct table *out, const struct kernel_groups *g, struct err *e)
{
	unsigned at[T_N];
	for (unsigned c = 0; c < T_N; c++) {
		bool only_op = c >= T_OP && c <= T_ELIGIBLE;
		bool skip = (only_op && g->by == KERNELS_BY_NAME) || (c == T_TC && g->by != KERNELS_BY_NAME) || (c == T_BLOCKS && !g->blocks) ||
		            (c == T_OCC && !g->occupancy);
		at[c] = skip ? UINT32_MAX : table_column(out, &kernels_columns[c]);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const struct kernel_group *x = &g->v[i];
		struct str name = profile_str(g->p, x->key.name);
		struct str uses = kernel_uses_tc_listed(name) ? STR("Yes") : STR("No");
		table_row(out);
		table_set_str(out, at[T_NAME], name);
		if (g->by == KERNELS_BY_NAME) {
			table_set_str(out, at[T_TC], uses);
		} else {
			table_set_str(out, at[T_OP], x->key.op ? profile_str(g->p, x->key.op) : STR("N/A"));
			kernel_groups_put_triple(out, at[T_GRID], x->key.grid, "[%d, %d, %d]");
			kernel_groups_put_triple(out, at[T_BLOCK], x->key.block, "[%d, %d, %d]");
			if (x->key.registers != INT32_MIN)
				table_set_i64(out, at[T_REGS], x->key.registers);
			if (x->key.shared_bytes != INT32_MIN)
				table_set_i64(out, at[T_SHARED], x->key.shared_bytes);
			table_set_str(out, at[T_USES], uses);
			bool eligible = x->key.op && op_tc_eligible_listed(profile_str(g->p, x->key.op));
			table_set_str(out, at[T_ELIGIBLE], eligible ? STR("Yes") : STR("No"));
		}
		table_set_i64(out, at[T_CALLS], (int64_t)x->calls);
		table_set_i64(out, at[T_TOTAL], round_us(x->total));
		table_set_i64(out, at[T_MEAN], round_even((double)x->total / (double)x->calls / 1000.0));
		table_set_i64(out, at[T_MAX], round_us(x->max));
		table_set_i64(out, at[T_MIN], round_us(x->min));
		if (g->blocks)
			table_set_f64(out, at[T_BLOCKS], mean_or_zero(x->blocks, x->total));
		if (g->occupancy)
			table_set_f64(out, at[T_OCC], mean_or_zero(x->occupancy, x->total));
	}
	return table_sort(out, STR("total_duration_us"), true, e);
}

int tb_kernels(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct arena a = {0};
	struct window w;
	struct kernel_groups g;
	if (tb_window(p, args, &a, &w, e) < 0)
		return -1;
	struct optree *t = optree_new(p, &tb_optree);
	int rc = kernel_groups_collect(p, args, &w, t, &kernels_rules, &g, e);
	if (rc == 0) {
		rc = tb_kernels_put(out, &g, e);
		kernel_groups_release(&g);
	}
	optree_free(t);
	arena_release(&a);
	return rc;
}
