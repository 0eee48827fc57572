/* DLProf's detailed report. */
#include "base/mem.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"

static void dlprof_ops_put_op(struct table *t, const struct op *op, const struct dlprof_op_names *names, const struct op_sum *s, unsigned first)
{
	table_row(t);
	table_set_str(t, 0, names->id);
	table_set_str(t, 1, names->name);
	table_set_str(t, 2, dlprof_direction(op));
	table_set_str(t, 3, names->type);
	table_set_i64(t, 4, (int64_t)s->calls);
	table_set_bool(t, 5, op->tc_eligible);
	table_set_bool(t, 6, s->tc_kernels > 0);
	dlprof_put_times(t, first, s);
	table_set_str(t, first + 16, op->data_type);
	table_set_str(t, first + 17, op->stack);
}

static void dlprof_ops_table(const struct profile *p, const struct op_sum *sum, struct table *t)
{
	static const struct column head[] = {
		{.id = "op_id", .title = "Op ID", .help = "The op's type and a running number.", .type = CELL_STR, .digits = 0},
		{.id = "op_name", .title = "Op Name", .help = "The op and where in the program it was called.", .type = CELL_STR, .flags = COLUMN_WIDE, .digits = 0},
		{.id = "direction", .title = "Direction", .help = "fprop or bprop; empty outside ops.", .type = CELL_STR, .digits = 0},
		{.id = "op_type", .title = "Op Type", .help = "The op alone.", .type = CELL_STR, .digits = 0},
		{.id = "no_calls", .title = "No. Calls", .help = "How often it ran.", .type = CELL_I64, .digits = 0},
		{.id = "tc_eligible", .title = "TC Eligible", .help = "Whether it could use Tensor Cores, by its type.", .type = CELL_BOOL, .flags = COLUMN_MINOR, .digits = 0},
		{.id = "using_tc", .title = "Using TC", .help = "Whether any of its kernels uses Tensor Cores, by DLProf's list of names.", .type = CELL_BOOL, .digits = 0},
	};
	uint32_t n;
	struct dlprof_op_row *order = dlprof_op_order(p, &t->arena, &n);
	for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
		table_column(t, &head[i]);
	unsigned first = dlprof_time_columns(t);
	TABLE_COLUMN(t, .id = "data_type", .title = "Data Type", .help = "Of its inputs.", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "stack_trace", .title = "Stack Trace", .help = "Lines that called it, outermost first, one a line.",
	             .type = CELL_STR, .flags = COLUMN_WIDE);
	for (uint32_t i = 0; i < n; i++)
		if (sum[order[i].op].calls)
			dlprof_ops_put_op(t, &p->ops->op[order[i].op], &order[i].names, &sum[order[i].op], first);
	if (n < p->ops->n_ops)
		table_note(t, "left out: device work whose API call was not recorded, for which DLProf has no op");
	mem_free(order);
}

int dlprof_ops(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct op_tc *tc = op_tc_new(p, true);
	struct op_sum *sum = NEW_ARRAY(p->ops->n_ops, struct op_sum); /* by op */
	for (uint32_t k = 0; k < p->ops->n_instances; k++)
		if (op_in_window(p, k, &w))
			op_sum_add(&sum[p->ops->instance[k].op], p, k, tc);
	dlprof_ops_table(p, sum, t);
	dlprof_table_hints(t, p, &w, HINT_KERNELS);
	mem_free(sum);
	op_tc_free(tc);
	return 0;
}
