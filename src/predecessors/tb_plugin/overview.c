/* The overview (overall_parser.py of the plugin). */
#include "base/round.h"
#include "predecessors/tb_plugin/steps.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/step_table.h"

static void role_rows(const struct roles *r, struct table *t)
{
	double mean_us = roles_mean_step_ns(r) / 1000;
	TABLE_COLUMN(t, .id = "role", .title = "Role", .help = "what the time went to; the first of the list that was active", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "mean_us", .title = "Time", .help = "mean over the steps", .type = CELL_I64, .unit = UNIT_US);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .help = "of the mean step", .type = CELL_F64, .unit = UNIT_PERCENT);
	table_row(t);
	table_set_str(t, 0, STR("Average Step Time"));
	table_set_i64(t, 1, round_even(mean_us));
	table_set_f64(t, 2, 100);
	for (int i = 0; i < ROLES; i++) {
		double us = (double)r->sum.ns[i] / 1000 / r->n;
		if (!r->shown[i])
			continue;
		table_row(t);
		table_set_str(t, 0, str_from(role_title[i]));
		table_set_i64(t, 1, round_even(us));
		table_set_f64(t, 2, round_digits(100 * us / mean_us, 2));
	}
}

/* The plugin counted the profiles that it showed together: one. */
static void tb_overview_environment_table(const struct roles *r, struct table *t)
{
	TABLE_COLUMN(t, .id = "title", .title = "Environment", .help = "what", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "value", .title = "Value", .help = "its value", .type = CELL_STR);
	table_row(t);
	table_set_str(t, 0, STR("Number of Worker(s)"));
	table_set_str(t, 1, STR("1"));
	table_row(t);
	table_set_str(t, 0, STR("Device Type"));
	table_set_str(t, 1, r->has_device ? STR("GPU") : STR("CPU"));
}

int tb_overview(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct arena a = {0};
	const struct steps *s = tb_steps_of(p, &a);
	struct roles *r = step_roles(p, s, &tb_roles, args, e);
	if (r) {
		role_rows(r, t);
		t->whole = true;
		table_note(t, "Mean over %u step%s. `opscope advise` says what to do about it.", r->n, r->n == 1 ? "" : "s");
		tb_step_table(r, s, table_section(t, "steps", "Steps"));
		if (p->gpu_op.rows.n)
			tb_device_table(p, s, args, table_section(t, "devices", "GPU summary"));
		tb_overview_environment_table(r, table_section(t, "environment", "Environment"));
	}
	int rc = r ? 0 : -1;
	roles_free(r);
	arena_release(&a);
	return rc;
}
