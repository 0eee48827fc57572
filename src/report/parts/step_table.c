#include "report/parts/step_table.h"

#include "base/round.h"

#include <stdio.h>

static const struct column ns_column[ROLES] = {
	[ROLE_KERNEL] = {.id = "kernel_ns", .title = "Kernel", .help = "a kernel was running", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY},
	[ROLE_MEMSET] = {.id = "memset_ns", .title = "Memset", .help = "a memset was running, and no kernel", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_MINOR},
	[ROLE_COMM] = {.id = "communication_ns", .title = "Communication", .help = "a collective was under way, and nothing to the left of this column: exposed communication",
	               .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY},
	[ROLE_MEMCPY] = {.id = "memcpy_ns", .title = "Memcpy", .help = "a copy was running, and nothing to the left of this column", .type = CELL_I64, .unit = UNIT_NS},
	[ROLE_RUNTIME] = {.id = "runtime_ns", .title = "Runtime", .help = "the CPU was in a runtime or driver call, and the device idle", .type = CELL_I64, .unit = UNIT_NS},
	[ROLE_DATALOADER] = {.id = "dataloader_ns", .title = "DataLoader", .help = "the CPU waited for the data loader, and nothing to the left of this column",
	                     .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY},
	[ROLE_CPU] = {.id = "cpu_exec_ns", .title = "CPU Exec", .help = "the CPU was in an operator or annotation, and nothing to the left of this column",
	              .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY},
	[ROLE_OTHER] = {.id = "other_ns", .title = "Other", .help = "the rest of the step: nothing recorded", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY},
};
static const struct column pct_column[ROLES] = {
	[ROLE_KERNEL] = {.id = "kernel_pct", .title = "Kernel", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_MEMCPY] = {.id = "memcpy_pct", .title = "Memcpy", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_MEMSET] = {.id = "memset_pct", .title = "Memset", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_COMM] = {.id = "communication_pct", .title = "Communication", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_RUNTIME] = {.id = "runtime_pct", .title = "Runtime", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_DATALOADER] = {.id = "dataloader_pct", .title = "DataLoader", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_CPU] = {.id = "cpu_exec_pct", .title = "CPU Exec", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
	[ROLE_OTHER] = {.id = "other_pct", .title = "Other", .help = "share of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
};

struct roles *step_roles(const struct profile *p, const struct steps *s, const struct roles_rules *rules, const struct report_args *args, struct err *e)
{
	if (!s->n) {
		err_set(e, ERR_DATA, "no steps: the input has neither ops nor device work");
		return NULL;
	}
	struct roles *r = roles_new(p, s, rules, args->has_steps ? &args->step_first : NULL, args->has_steps ? &args->step_last : NULL);
	if (r->n)
		return r;
	roles_free(r);
	err_set(e, ERR_DATA, "%s: the input has steps %lld to %lld", steps_range_text(args->step_first, args->step_last).s,
	        (long long)s->v[0].number, (long long)s->v[s->n - 1].number);
	return NULL;
}

static bool step_table_is_number(const struct step *s)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%lld", (long long)s->number);
	return str_eq(s->name, (struct str){text, (size_t)n});
}

/* Integers, unless the name of any step of the input is none ("ProfilerStep#last"). */
static enum cell_type type_of_names(const struct steps *s)
{
	bool all = true;
	for (unsigned i = 0; i < s->total; i++)
		all &= step_table_is_number(&s->v[i]);
	for (unsigned i = 0; i < s->edges; i++)
		all &= step_table_is_number(&s->edge[i]);
	return all ? CELL_I64 : CELL_STR;
}

static void step_table_put_name(struct table *t, unsigned col, const struct step *s)
{
	if (t->data[col].col.type == CELL_I64)
		table_set_i64(t, col, s->number);
	else
		table_set_str(t, col, s->name);
}

/* Columns that only `steps` has. */
struct own_columns {
	bool whole, source;
	const struct steps *steps;
};

static void step_table_own_row(const struct roles *r, const struct own_columns *o, const struct step *step, const struct role_costs *c, bool whole,
                               struct table *t)
{
	unsigned col = 0;
	table_row(t);
	step_table_put_name(t, col++, step);
	if (o->whole)
		table_set_bool(t, col++, whole);
	if (o->source)
		table_set_str(t, col++, str_from(step_source_name[o->steps->source]));
	table_set_i64(t, col++, step->start_ns);
	table_set_i64(t, col++, c->total_ns);
	table_set_i64(t, col++, step->host_end_ns - step->host_start_ns);
	table_set_i64(t, col++, step->device_ops);
	for (int i = 0; i < ROLES; i++)
		if (r->shown[roles_own.order[i]])
			table_set_i64(t, col++, c->ns[roles_own.order[i]]);
	for (int i = 0; i < ROLES; i++)
		if (r->shown[roles_own.order[i]])
			table_set_f64(t, col++, 100.0 * (double)c->ns[roles_own.order[i]] / (double)c->total_ns);
}

static void step_table_own_table(const struct roles *r, const struct steps *s, const struct own_columns *o, struct table *t)
{
	TABLE_COLUMN(t, .id = "step", .title = "Step", .help = "number of the step: of its ProfilerStep or range, else from border to border; 0 for a whole trace",
	             .type = type_of_names(s), .flags = COLUMN_GROUP);
	if (o->whole)
		TABLE_COLUMN(t, .id = "whole", .title = "Whole", .help = "no: before the first or after the last border, or not recorded to its end; such a row counts in no sum or mean", .type = CELL_BOOL);
	if (o->source)
		TABLE_COLUMN(t, .id = "source", .title = "Source", .help = "where steps come from: given, profiler, named, optimizer, period, none", .type = CELL_STR,
		             .flags = COLUMN_DETAIL);
	TABLE_COLUMN(t, .id = "start_ns", .title = "Start", .help = "when the step begins, on the trace's clock", .type = CELL_I64, .unit = UNIT_TIME_NS, .flags = COLUMN_DETAIL);
	TABLE_COLUMN(t, .id = "total_ns", .title = "Total", .help = "length of the step, its device work included", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "host_ns", .title = "Host", .help = "length of the annotation on the CPU, or from border to border", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL);
	TABLE_COLUMN(t, .id = "device_ops", .title = "Device ops", .help = "kernels, copies and sets that the step launched; without steps, those that began in the time shown", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_MINOR);
	for (int i = 0; i < ROLES; i++)
		if (r->shown[roles_own.order[i]])
			table_column(t, &ns_column[roles_own.order[i]]);
	for (int i = 0; i < ROLES; i++)
		if (r->shown[roles_own.order[i]])
			table_column(t, &pct_column[roles_own.order[i]]);
	unsigned edge = 0, edges = o->whole ? r->edges : 0;
	for (unsigned i = 0; i < r->n; i++) {
		for (; edge < edges && s->edge[edge].host_start_ns < r->step[i]->host_start_ns; edge++)
			step_table_own_row(r, o, &s->edge[edge], &r->edge[edge], false, t);
		step_table_own_row(r, o, r->step[i], &r->cost[i], !r->step[i]->cut, t);
	}
	for (; edge < edges; edge++)
		step_table_own_row(r, o, &s->edge[edge], &r->edge[edge], false, t);
}

void step_table_note_sum(const struct roles *r, const char *why, struct table *t)
{
	int64_t parts = 0;
	for (int i = 0; i < ROLES; i++)
		parts += r->sum.ns[i];
	if (r->gpus > 1)
		table_note(t, "Of %u GPUs: means. Each GPU has its own work, and all have the host's.", r->gpus);
	if (parts == r->sum.total_ns)
		table_note(t, "Roles sum to %lld ns, the length of the %u step%s.", (long long)parts, r->n, r->n == 1 ? "" : "s");
	else
		table_note(t, "Roles sum to %lld ns, the %u step%s to %lld%s.", (long long)parts, r->n, r->n == 1 ? "" : "s", (long long)r->sum.total_ns, why);
}

/* Why steps at the end do not count. */
static void step_table_note_left_out(const struct steps *s, struct table *t)
{
	unsigned out = s->total - s->n;
	uint64_t launches = 0, lost = 0;
	for (unsigned i = s->n; i < s->total; i++) {
		launches += s->v[i].launches;
		lost += s->v[i].launches_lost;
	}
	if (lost)
		table_warn(t, "%u of %u steps at the end left out: of the %llu calls in them that launch device work, %llu have none in "
		           "the trace.", out, s->total, (unsigned long long)launches, (unsigned long long)lost);
	else
		table_warn(t, "%u of %u steps at the end left out: they launched no device work, earlier ones did.", out, s->total);
}

void step_table_note_cut(const struct steps *s, struct table *t)
{
	if (!s->cut)
		return;
	bool aside = s->edges > 0;
	const struct step *of = aside ? s->edge : s->v, *first = of, *last = of;
	for (unsigned i = 0, n = aside ? s->edges : s->n, seen = 0; i < n; i++)
		if (of[i].cut) {
			first = seen++ ? first : &of[i];
			last = &of[i];
		}
	const char *what = aside ? "in no sum, mean or count" : "as no step is whole, the figures are of such parts";
	if (s->cut == 1)
		table_warn(t, "Step " STR_FMT " was not recorded to its end: %s.", STR_ARG(first->name), what);
	else
		table_warn(t, "%u steps, the first " STR_FMT " and the last " STR_FMT ", were not recorded to their ends: %s.", s->cut, STR_ARG(first->name),
		           STR_ARG(last->name), what);
}

void step_table(const struct roles *r, const struct profile *p, bool all, struct table *t)
{
	const struct steps *s = p->steps;
	step_table_own_table(r, s, &(struct own_columns){all && (r->edges || (s->cut && !s->edges)), all, s}, t);
	step_table_note_sum(r, "", t);
	if (s->source != STEPS_PROFILER && s->how.n)
		table_warn(t, STR_FMT, STR_ARG(s->how));
	step_table_note_cut(s, t);
	if (s->n < s->total)
		step_table_note_left_out(s, t);
}
