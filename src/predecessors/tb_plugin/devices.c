/* How well GPUs were used (overall_parser.py and gpu_metrics_parser.py of the plugin). */
#include "analysis/recording.h"
#include "base/round.h"
#include "predecessors/tb_plugin/steps.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/device_table.h"
#include "report/parts/step_table.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const struct column device_columns[] = {
	{.id = "device", .title = "GPU", .help = "ordinal", .type = CELL_I64},
	{.id = "name", .title = "Name", .help = "product name", .type = CELL_STR},
	{.id = "memory_gb", .title = "Memory (GB)", .help = "global memory, GB of 1024^3", .type = CELL_F64, .digits = 2},
	{.id = "compute_capability", .title = "Compute Capability", .help = "compute capability", .type = CELL_STR},
	{.id = "gpu_utilization_pct", .title = "GPU Utilization", .help = "GPU busy time / all steps time", .type = CELL_F64, .unit = UNIT_PERCENT},
	{.id = "sm_efficiency_pct", .title = "Est. SM Efficiency", .help = "estimated streaming multiprocessor efficiency", .type = CELL_F64, .unit = UNIT_PERCENT},
	{.id = "achieved_occupancy_pct", .title = "Est. Achieved Occupancy", .help = "estimated achieved occupancy", .type = CELL_F64, .unit = UNIT_PERCENT},
	{.id = "tc_time_pct", .title = "Kernel Time using Tensor Cores", .help = "of the kernels attached to operators", .type = CELL_F64, .unit = UNIT_PERCENT},
};

static void tb_devices_device_row(const struct profile *p, const struct gpu_metrics *m, struct table *t)
{
	unsigned col = 0;
	table_row(t);
	table_set_i64(t, col++, m->device);
	if (m->row != ROW_NONE) {
		table_set_str(t, col, profile_str(p, p->device.name[m->row]));
		if (p->device.memory_bytes[m->row] > 0)
			table_set_f64(t, col + 1, round_digits((double)p->device.memory_bytes[m->row] / GIB, 2));
		device_table_set_capability(p, m->row, t, col + 2);
	}
	col += 3;
	table_set_f64(t, col++, round_digits(m->utilization * 100, 2));
	table_set_f64(t, col++, round_digits(m->sm_efficiency * 100, 2));
	table_set_f64(t, col++, round_digits(m->occupancy_pct, 2));
	table_set_f64(t, col++, round_digits(m->tc_ratio * 100, 2));
}

void tb_device_table(const struct profile *p, const struct steps *s, const struct report_args *args, struct table *t)
{
	struct gpu_metrics_list l;
	struct optree *tree = optree_new(p, &tb_optree);
	gpu_metrics_measure(p, s, &tb_gpu_metrics, tree, args->has_steps ? &args->step_first : NULL, args->has_steps ? &args->step_last : NULL, &l);
	table_columns(t, device_columns, sizeof device_columns / sizeof *device_columns);
	for (unsigned i = 0; i < l.n; i++)
		if (l.v[i].trace_kernels)
			tb_devices_device_row(p, &l.v[i], t);
	table_note(t, "Measured from the start of the first step to the end of the last: %lld ns.", (long long)l.span_ns);
	gpu_metrics_release(&l);
	optree_free(tree);
}

int tb_devices(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	if (!p->device.rows.n && !p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "no devices: the input describes none and ran nothing on any; to record them: %s",
		               recording_how(p, RECORD_DEVICE_WORK));
	struct arena a = {0};
	const struct steps *s = tb_steps_of(p, &a);
	struct roles *r = args->has_steps ? step_roles(p, s, &tb_roles, args, e) : NULL; /* is there such a step? */
	int rc = args->has_steps && !r ? -1 : 0;
	if (rc == 0)
		tb_device_table(p, s, args, t);
	roles_free(r);
	arena_release(&a);
	return rc;
}
