/* DLProf's tensor core report. */
#include "base/mem.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"
#include "query/op_kernels.h"

struct dlprof_tensor_cores_eligible {
	const struct profile *p;
	struct op_sum *sum;      /* by op */
	struct op_kernels kernels;
};

static struct str dlprof_tensor_cores_function_name(const void *p, uint32_t name)
{
	return kernel_function_name(profile_str(p, name));
}

enum {
	D_ID, D_NAME, D_DIRECTION, D_TYPE, D_USES, D_TOTAL, D_TC, D_OTHER, D_SHARE, D_KERNELS, D_TC_KERNELS, D_TC_NAMES, D_OTHER_KERNELS,
	D_OTHER_NAMES, D_COLUMNS,
};
static const struct column columns[D_COLUMNS] = {
	[D_ID] = {.id = "op_id", .title = "Op ID", .help = "The op's type and a running number.", .type = CELL_STR, .digits = 0},
	[D_NAME] = {.id = "op_name", .title = "Op Name", .help = "The op and where in the program it was called.", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_PATH, .digits = 0},
	[D_DIRECTION] = {.id = "direction", .title = "Direction", .help = "fprop or bprop.", .type = CELL_STR, .digits = 0},
	[D_TYPE] = {.id = "op_type", .title = "Op Type", .help = "The op alone.", .type = CELL_STR, .digits = 0},
	[D_USES] = {.id = "uses_tc", .title = "Uses TC", .help = "Whether any of its kernels uses Tensor Cores.", .type = CELL_BOOL, .digits = 0},
	[D_TOTAL] = {.id = "total_gpu_time_ns", .title = "Total GPU Time (ns)", .help = "Sum of its kernels' durations.", .type = CELL_I64, .digits = 0},
	[D_TC] = {.id = "tc_gpu_time_ns", .title = "TC GPU Time (ns)", .help = "Of kernels that use Tensor Cores.", .type = CELL_I64, .digits = 0},
	[D_OTHER] = {.id = "non_tc_gpu_time_ns", .title = "Non-TC GPU Time (ns)", .help = "Of all other kernels.", .type = CELL_I64, .digits = 0},
	[D_SHARE] = {.id = "tc_utilization", .title = "TC Utilization (%)", .help = "Share of the first in the sum.", .type = CELL_F64, .digits = 1},
	[D_KERNELS] = {.id = "total_kernel_count", .title = "Total Kernel Count", .help = "Distinct names of kernels.", .type = CELL_I64, .digits = 0},
	[D_TC_KERNELS] = {.id = "tc_kernel_count", .title = "TC Kernel Count", .help = "Of these, with Tensor Cores.", .type = CELL_I64, .digits = 0},
	[D_TC_NAMES] = {.id = "tc_kernel_names", .title = "TC Kernel Names", .help = "Their names.", .type = CELL_STR, .flags = COLUMN_WIDE, .digits = 0},
	[D_OTHER_KERNELS] = {.id = "non_tc_kernel_count", .title = "Non-TC Kernel Count", .help = "Without.", .type = CELL_I64, .digits = 0},
	[D_OTHER_NAMES] = {.id = "non_tc_kernel_names", .title = "Non-TC Kernel Names", .help = "Their names.", .type = CELL_STR, .flags = COLUMN_WIDE, .digits = 0},
};

static void dlprof_tensor_cores_put_op(struct table *t, const struct dlprof_tensor_cores_eligible *x, const struct dlprof_op_row *r)
{
	const struct op *op = &x->p->ops->op[r->op];
	const struct op_sum *s = &x->sum[r->op];
	int64_t tc, other; /* DLProf counts names */
	struct str tc_names = op_kernels_text(&x->kernels, r->op, TRI_YES, dlprof_tensor_cores_function_name, x->p, &t->arena, &tc);
	struct str other_names = op_kernels_text(&x->kernels, r->op, TRI_NO, dlprof_tensor_cores_function_name, x->p, &t->arena, &other);
	table_row(t);
	table_set_str(t, D_ID, r->names.id);
	table_set_str(t, D_NAME, r->names.name);
	table_set_str(t, D_DIRECTION, dlprof_direction(op));
	table_set_str(t, D_TYPE, r->names.type);
	table_set_bool(t, D_USES, s->tc_kernels > 0);
	table_set_i64(t, D_TOTAL, s->kernel_ns);
	table_set_i64(t, D_TC, s->tc_ns);
	table_set_i64(t, D_OTHER, s->kernel_ns - s->tc_ns);
	table_set_f64(t, D_SHARE, s->kernel_ns ? 100.0 * (double)s->tc_ns / (double)s->kernel_ns : 0);
	table_set_i64(t, D_KERNELS, tc + other);
	table_set_i64(t, D_TC_KERNELS, tc);
	table_set_str(t, D_TC_NAMES, tc_names);
	table_set_i64(t, D_OTHER_KERNELS, other);
	table_set_str(t, D_OTHER_NAMES, other_names);
}

static void tensor_cores_table(const struct dlprof_tensor_cores_eligible *x, struct table *t)
{
	uint32_t n;
	struct dlprof_op_row *order = dlprof_op_order(x->p, &t->arena, &n);
	table_columns(t, columns, D_COLUMNS);
	for (uint32_t i = 0; i < n; i++)
		if (x->sum[order[i].op].calls)
			dlprof_tensor_cores_put_op(t, x, &order[i]);
	mem_free(order);
}

static void dlprof_tensor_cores_sum_all(struct dlprof_tensor_cores_eligible *x, const struct window *w, struct op_tc *tc)
{
	const struct ops *o = x->p->ops;
	uint32_t *by_op = op_instances_by_op(o);
	for (uint32_t i = 0; i < o->n_instances; i++) {
		const struct op_instance *in = &o->instance[by_op[i]];
		if (!o->op[in->op].tc_eligible || !op_in_window(x->p, by_op[i], w))
			continue;
		op_sum_add(&x->sum[in->op], x->p, by_op[i], tc);
		for (uint32_t k = 0; k < in->gpu_n; k++)
			if (x->p->gpu_op.kind[o->gpu[in->gpu_first + k]] == GPU_KERNEL)
				op_kernels_add(&x->kernels, in->op, o->gpu[in->gpu_first + k]);
	}
	mem_free(by_op);
}

int dlprof_tensor_cores(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct op_tc *tc = op_tc_new(p, true);
	struct dlprof_tensor_cores_eligible x = {.p = p, .sum = NEW_ARRAY(p->ops->n_ops, struct op_sum)};
	op_kernels_init(&x.kernels, p, tc);
	dlprof_tensor_cores_sum_all(&x, &w, tc);
	tensor_cores_table(&x, t);
	dlprof_table_hints(t, p, &w, HINT_KERNELS);
	op_kernels_release(&x.kernels);
	mem_free(x.sum);
	op_tc_free(tc);
	return 0;
}
