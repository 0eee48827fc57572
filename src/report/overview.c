#include "analysis/job.h"
#include "base/round.h"
#include "report/device_table.h"
#include "report/step_table.h"

static void main_table(const struct roles *r, bool plugin, struct table *t)
{
	TABLE_COLUMN(t, "role", "Role", "what the time went to; the first of the list that was active", CELL_STR);
	if (plugin)
		TABLE_COLUMN(t, "mean_us", "Time", "mean over the steps", CELL_I64, UNIT_US);
	else
		TABLE_COLUMN(t, "mean_ns", "Mean per step", "mean over the steps, rounded to the ns", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "share_pct", "Share", "of the mean step", CELL_F64, UNIT_PERCENT);
	if (!plugin)
		TABLE_COLUMN(t, "total_ns", "Total", "sum over the steps", CELL_I64, UNIT_NS);
	double mean_us = roles_mean_step_ns(r) / 1000;
	table_row(t);
	table_set_str(t, 0, STR("Average Step Time"));
	table_set_i64(t, 1, plugin ? round_even(mean_us) : round_even(roles_mean_step_ns(r)));
	table_set_f64(t, 2, 100);
	if (!plugin)
		table_set_i64(t, 3, r->sum.total_ns);
	for (int i = 0; i < ROLES; i++) {
		if (!r->shown[i])
			continue;
		table_row(t);
		table_set_str(t, 0, str_from(role_title[i]));
		if (plugin) {
			double us = (double)r->sum.ns[i] / 1000 / r->n;
			table_set_i64(t, 1, round_even(us));
			table_set_f64(t, 2, round_digits(100 * us / mean_us, 2));
		} else {
			table_set_i64(t, 1, round_even(roles_mean_ns(r, i)));
			table_set_f64(t, 2, roles_share_pct(r, i));
			table_set_i64(t, 3, r->sum.ns[i]);
		}
	}
	t->whole = true;
	table_note(t, "Mean over %u step%s. `opscope advise` says what to do about it.", r->n, r->n == 1 ? "" : "s");
}

/* The plugin counted the profiles that it showed together: one. */
static void environment_table(const struct roles *r, const struct profile *p, bool plugin, struct table *t)
{
	TABLE_COLUMN(t, "title", "Environment", "what", CELL_STR);
	TABLE_COLUMN(t, "value", "Value", "its value", CELL_STR);
	table_row(t);
	table_set_str(t, 0, plugin ? STR("Number of Worker(s)") : STR("Ranks"));
	table_set_fmt(t, 1, "%lld", plugin || !job_of(p).world ? 1LL : (long long)job_of(p).world);
	table_row(t);
	table_set_str(t, 0, STR("Device Type"));
	table_set_str(t, 1, r->has_device ? STR("GPU") : STR("CPU"));
}

static int run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	bool plugin = report_is_plugin(args);
	struct roles *r = step_roles(p, args, e);
	if (!r)
		return -1;
	main_table(r, plugin, t);
	step_table(r, p, plugin, false, table_section(t, "steps", "Steps"));
	if (p->gpu_op.rows.n)
		device_table(p, args, true, table_section(t, "devices", "GPU summary"));
	if (!plugin && str_eqc(p->format, "capture") && r->sum.ns[ROLE_CPU] && !r->sum.ns[ROLE_DATALOADER])
		table_note(t, "DataLoader is the time of ranges that begin with `enumerate(DataLoader)#`, as PyTorch calls its own; other ranges are CPU Exec: "
		           "`opscope report nvtx --group-by=path` has them by name");
	environment_table(r, p, plugin, table_section(t, "environment", "Environment"));
	roles_free(r);
	return 0;
}

static const char *const compat[] = {"tb-plugin", NULL};

const struct report report_overview = {
	.name = "overview",
	.title = "Where the step time went",
	.help = "The mean step, divided among what was active. Every nanosecond goes to the first of these that was active anywhere: "
	        "kernel, memcpy, memset, communication, runtime call, data loader, CPU op; what is left is Other. So DataLoader is "
	        "the time in which the GPU had nothing to do because the CPU waited for data, and CPU Exec is the time in which "
	        "the GPU waited for the CPU to launch work. Below: the same per step, and how well each GPU was used.",
	.compat = compat,
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = run,
};
