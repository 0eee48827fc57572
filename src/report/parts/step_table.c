#include "report/parts/step_table.h"
#include "analysis/names/names.h"

#include "base/round.h"

#include <stdio.h>

/* The times and shares of roles stand in the order of roles_own. */
enum {
	STEP_NUMBER, STEP_WHOLE, STEP_SOURCE, STEP_START, STEP_TOTAL, STEP_HOST, STEP_DEVICE_OPS, STEP_ROLES, STEP_SHARES = STEP_ROLES + ROLES,
	STEP_COLUMNS = STEP_SHARES + ROLES
};

#define STEP_SHARE(id_, title_) \
	COLUMN(PERCENT, id_, title_, "share of the step", .flags = COLUMN_DETAIL)

static const struct section_column step_columns[STEP_COLUMNS] = {
	[STEP_NUMBER] = {COLUMN(NUMBER, "step", "Step", "number of the step: of its ProfilerStep or range, else from border to border; 0 for a whole trace",
	                        .flags = COLUMN_GROUP)},
	[STEP_WHOLE] = {COLUMN(YES_NO, "whole", "Whole", "no: before the first or after the last border, or not recorded to its end; such a row counts in no sum or "
	                       "mean"), .when = WHEN_RECORDED},
	[STEP_SOURCE] = {COLUMN(TEXT, "source", "Source", "where steps come from: given, profiler, named, optimizer, period, none", .flags = COLUMN_DETAIL)},
	[STEP_START] = {COLUMN(TIME, "start_ns", "Start", "when the step begins, on the trace's clock", .flags = COLUMN_DETAIL)},
	[STEP_TOTAL] = {COLUMN(NS, "total_ns", "Total", "length of the step, its device work included", .flags = COLUMN_ANSWER)},
	[STEP_HOST] = {COLUMN(NS, "host_ns", "Host", "length of the annotation on the CPU, or from border to border", .flags = COLUMN_DETAIL)},
	[STEP_DEVICE_OPS] = {COLUMN(COUNT, "device_ops", "Device ops", "kernels, copies and sets that the step launched; without steps, those that began in the time "
	                            "shown", .flags = COLUMN_MINOR)},
	[STEP_ROLES] = {COLUMN(NS, "kernel_ns", "Kernel", "a kernel was running", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	{COLUMN(NS, "memset_ns", "Memset", "a memset was running, and no kernel", .flags = COLUMN_MINOR), .when = WHEN_DEVICE},
	{COLUMN(NS, "communication_ns", "Communication", "a collective was under way, and nothing to the left of this column: exposed communication",
	        .flags = COLUMN_ANSWER), .when = WHEN_COLLECTIVES},
	{COLUMN(NS, "memcpy_ns", "Memcpy", "a copy was running, and nothing to the left of this column"), .when = WHEN_DEVICE},
	{COLUMN(NS, "runtime_ns", "Runtime", "the CPU was in a runtime or driver call, and the device idle"), .when = WHEN_DEVICE},
	{COLUMN(NS, "dataloader_ns", "DataLoader", "the CPU waited for the data loader, and nothing to the left of this column", .flags = COLUMN_ANSWER)},
	{COLUMN(NS, "cpu_exec_ns", "CPU Exec", "the CPU was in an operator or annotation, and nothing to the left of this column", .flags = COLUMN_ANSWER)},
	{COLUMN(NS, "other_ns", "Other", "the rest of the step: nothing recorded", .flags = COLUMN_ANSWER)},
	[STEP_SHARES] = {STEP_SHARE("kernel_pct", "Kernel"), .when = WHEN_DEVICE},
	{STEP_SHARE("memset_pct", "Memset"), .when = WHEN_DEVICE},
	{STEP_SHARE("communication_pct", "Communication"), .when = WHEN_COLLECTIVES},
	{STEP_SHARE("memcpy_pct", "Memcpy"), .when = WHEN_DEVICE},
	{STEP_SHARE("runtime_pct", "Runtime"), .when = WHEN_DEVICE},
	{STEP_SHARE("dataloader_pct", "DataLoader")},
	{STEP_SHARE("cpu_exec_pct", "CPU Exec")},
	{STEP_SHARE("other_pct", "Other")},
};
const struct section step_table_section = {.columns = step_columns, .n = STEP_COLUMNS};
const struct section step_table_number = {.name = "steps", .title = "Steps", .columns = step_columns, .n = STEP_WHOLE};
const struct section step_table_times = {.name = "steps", .title = "Steps", .columns = step_columns + STEP_START, .n = STEP_COLUMNS - STEP_START};

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

static void step_table_put_row(const struct steps *s, const struct step *step, const struct role_costs *c, bool whole, struct table *t)
{
	table_row(t);
	if (t->data[STEP_NUMBER].col.type == CELL_I64)
		table_set_i64(t, STEP_NUMBER, step->number);
	else
		table_set_str(t, STEP_NUMBER, step->name);
	table_set_bool(t, STEP_WHOLE, whole);
	table_set_str(t, STEP_SOURCE, str_from(step_source_name[s->source]));
	table_set_i64(t, STEP_START, step->start_ns);
	table_set_i64(t, STEP_TOTAL, c->total_ns);
	table_set_i64(t, STEP_HOST, step->host_end_ns - step->host_start_ns);
	table_set_i64(t, STEP_DEVICE_OPS, step->device_ops);
	for (unsigned i = 0; i < ROLES; i++) {
		int64_t ns = c->ns[roles_own.order[i]];
		table_set_i64(t, STEP_ROLES + i, ns);
		table_set_f64(t, STEP_SHARES + i, 100.0 * (double)ns / (double)c->total_ns);
	}
}

static void step_table_start(const struct roles *r, const struct steps *s, const struct report_args *args, bool all, bool whole, struct table *t)
{
	section_start(&step_table_section, args, WHEN_DEVICE | WHEN_COLLECTIVES | WHEN_RECORDED, t);
	t->data[STEP_NUMBER].col.type = type_of_names(s);
	if (!whole)
		section_leave_out(&step_table_section, STEP_WHOLE, t);
	if (!all)
		table_leave_out(t, STEP_SOURCE);
	for (unsigned i = 0; i < ROLES; i++)
		if (!r->shown[roles_own.order[i]]) {
			section_leave_out(&step_table_section, STEP_ROLES + i, t);
			section_leave_out(&step_table_section, STEP_SHARES + i, t);
		}
}

static void step_table_put_rows(const struct roles *r, const struct steps *s, unsigned edges, struct table *t)
{
	unsigned edge = 0;
	for (unsigned i = 0; i < r->n; i++) {
		for (; edge < edges && s->edge[edge].host_start_ns < r->step[i]->host_start_ns; edge++)
			step_table_put_row(s, &s->edge[edge], &r->edge[edge], false, t);
		step_table_put_row(s, r->step[i], &r->cost[i], !r->step[i]->cut, t);
	}
	for (; edge < edges; edge++)
		step_table_put_row(s, &s->edge[edge], &r->edge[edge], false, t);
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

const char *step_table_without_loader(const struct profile *p)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (name_is_dataloader(p, p->span.name[i]))
			return "";
	return " No DataLoader ranges were recorded: time in which data is loaded, if any, is in other roles.";
}

/* Notes why steps at the end do not count. */
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

void step_table_note_begin(const struct steps *s, struct table *t)
{
	const double range_ms = s->n ? (double)(s->v[0].host_end_ns - s->v[0].host_start_ns) / 1e6 : 0, ms = (double)s->before.ns / 1e6;
	if (s->before.waited_ns)
		table_warn(t, "Step " STR_FMT " begins with its first device work, %.3f ms after its range (%.3f ms) did: this work waited %.3f ms behind its launch, no later work waited longer than %.3f ms for an idle GPU, and so "
		           "the GPU still ran work from before, which the recording does not hold.", STR_ARG(s->v[0].name), ms, range_ms, (double)s->before.waited_ns / 1e6, (double)s->before.longest_ns / 1e6);
	else if (s->before.ns > 0)
		table_warn(t, "Step " STR_FMT " begins %.3f ms after its range (%.3f ms) did, when the GPU had ended work that was launched before the range.", STR_ARG(s->v[0].name), ms, range_ms);
}

void step_table(const struct roles *r, const struct profile *p, const struct report_args *args, bool all, struct table *t)
{
	const struct steps *s = p->steps;
	bool whole = all && (r->edges || (s->cut && !s->edges));
	step_table_start(r, s, args, all, whole, t);
	step_table_put_rows(r, s, whole ? r->edges : 0, t);
	step_table_note_sum(r, "", t);
	const char *loader = all ? step_table_without_loader(p) : "";
	if (*loader)
		table_note(t, "%s", loader + 1);
	if (s->n && (!args->has_steps || (s->v[0].number >= args->step_first && s->v[0].number <= args->step_last)))
		step_table_note_begin(s, t);
	if (s->source != STEPS_PROFILER && s->how.n)
		table_warn(t, STR_FMT, STR_ARG(s->how));
	step_table_note_cut(s, t);
	if (s->n < s->total)
		step_table_note_left_out(s, t);
}
