/* Steps by role (event_parser.py and overall_parser.py of the plugin). */
#include "base/round.h"
#include "predecessors/tb_plugin/steps.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/step_table.h"

const struct steps *tb_steps_of(const struct profile *p, struct arena *a)
{
	return steps_of_profiler(p, 0.8, a);
}

int tb_window(const struct profile *p, const struct report_args *args, struct arena *a, struct window *w, struct err *e)
{
	struct step_window in;
	*w = (struct window){.all = !args->has_steps};
	if (w->all)
		return 0;
	if (steps_window(tb_steps_of(p, a), args->step_first, args->step_last, &in, e) < 0) {
		arena_release(a);
		return -1;
	}
	*w = window_from(&in);
	return 0;
}

#define US_COLUMN(id_, title_) {.id = id_ "_us", .title = title_, .help = "as the plugin gave it", .type = CELL_I64, .unit = UNIT_US}
#define PCT_COLUMN(id_, title_) {.id = id_ "_pct", .title = title_, .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT}
#define ROLE_COLUMNS(COLUMN_OF) { \
	[ROLE_KERNEL] = COLUMN_OF("kernel", "Kernel"), \
	[ROLE_MEMCPY] = COLUMN_OF("memcpy", "Memcpy"), \
	[ROLE_MEMSET] = COLUMN_OF("memset", "Memset"), \
	[ROLE_COMM] = COLUMN_OF("communication", "Communication"), \
	[ROLE_RUNTIME] = COLUMN_OF("runtime", "Runtime"), \
	[ROLE_DATALOADER] = COLUMN_OF("dataloader", "DataLoader"), \
	[ROLE_CPU] = COLUMN_OF("cpu_exec", "CPU Exec"), \
	[ROLE_OTHER] = COLUMN_OF("other", "Other"), \
}
static const struct column us_column[ROLES] = ROLE_COLUMNS(US_COLUMN), pct_column[ROLES] = ROLE_COLUMNS(PCT_COLUMN);

static void step_rows(const struct roles *r, struct table *t)
{
	TABLE_COLUMN(t, .id = "step", .title = "Step", .help = "number of the ProfilerStep", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "total_us", .title = "Total", .help = "length of the step", .type = CELL_I64, .unit = UNIT_US);
	for (int i = 0; i < ROLES; i++)
		if (r->shown[i]) {
			table_column(t, &us_column[i]);
			table_column(t, &pct_column[i]);
		}
	for (unsigned s = 0; s < r->n; s++) {
		const struct role_costs *c = &r->cost[s];
		double total = (double)c->total_ns / 1000;
		unsigned col = 0;
		table_row(t);
		table_set_str(t, col++, r->step[s]->name);
		table_set_i64(t, col++, round_even(total));
		for (int i = 0; i < ROLES; i++) {
			if (!r->shown[i])
				continue;
			double us = (double)c->ns[i] / 1000;
			table_set_i64(t, col++, round_even(us));
			table_set_f64(t, col++, round_digits(100 * us / total, 2));
		}
	}
}

void tb_step_table(const struct roles *r, const struct steps *s, struct table *t)
{
	step_rows(r, t);
	step_table_note_sum(r, ": the plugin counts roles again once the device covers the steps completely", t);
	if (s->whole_trace)
		table_note(t, "The trace has no ProfilerStep: all of it is one step.");
	step_table_note_cut(s, t);
	if (s->n < s->total)
		table_note(t, "%u of %u steps at the end left out, as the plugin does: no device work, or under 0.8 times that of the "
		           "step before.", s->total - s->n, s->total);
}

int tb_steps(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct arena a = {0};
	const struct steps *s = tb_steps_of(p, &a);
	struct roles *r = step_roles(p, s, &tb_roles, args, e);
	if (r)
		tb_step_table(r, s, t);
	int rc = r ? 0 : -1;
	roles_free(r);
	arena_release(&a);
	return rc;
}
