#include "query/aggregate.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "analysis/steps/slice.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "io/remote/remote.h"
#include "query/catalog.h"
#include "query/summary_sums.h"
#include "store/reuse.h"
#include "store/save.h"
#include "store/together.h"

/* What one report gave. */
struct aggregate_made {
	struct table t;
	struct err e;                /* where it failed */
	bool has_table;              /* it gave one, which is not kept yet */
	bool failed;
};

/* The tables of the file that describe its report tables, while they are made. */
struct aggregate_work {
	struct save *save;
	struct profile *p;
	struct report_args args;
	struct aggregation a;
	struct table columns, notes, missing;
	struct catalog catalog;
	struct aggregate_made *made; /* by place in the catalog */
	struct err *e;
};

static void aggregate_work_init(struct aggregate_work *w)
{
	static const char *const columns[] = {"table_name", "id", "title", "type", "unit", "help"};
	table_init(&w->columns, "report_columns", "Columns of the report tables");
	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
		TABLE_COLUMN(&w->columns, .id = columns[i], .title = columns[i], .type = CELL_STR);
	table_init(&w->notes, "report_notes", "Notes under the report tables");
	TABLE_COLUMN(&w->notes, .id = "table_name", .title = "Table", .type = CELL_STR);
	TABLE_COLUMN(&w->notes, .id = "note", .title = "Note", .type = CELL_STR);
	table_init(&w->missing, "report_missing", "Reports for which the trace has no data");
	TABLE_COLUMN(&w->missing, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(&w->missing, .id = "reason", .title = "Reason", .type = CELL_STR);
}

static void aggregate_work_release(struct aggregate_work *w)
{
	table_release(&w->columns);
	table_release(&w->notes);
	table_release(&w->missing);
}

static void aggregate_describe_(struct aggregate_work *w, const char *name, const struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		const struct column *col = &t->data[c].col;
		const char *const texts[] = {name, col->id, col->title, table_type_name(col->type), table_unit_name(col->unit), col->help};
		table_row(&w->columns);
		for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
			table_set_str_copy(&w->columns, i, str_from(texts[i]));
	}
	for (unsigned i = 0; i < t->n_notes; i++) {
		table_row(&w->notes);
		table_set_str_copy(&w->notes, 0, str_from(name));
		table_set_str_copy(&w->notes, 1, t->notes[i]);
	}
}

static void aggregate_leave_out(struct aggregate_work *w, const char *name, const char *reason)
{
	table_row(&w->missing);
	table_set_str_copy(&w->missing, 0, str_from(name));
	table_set_str_copy(&w->missing, 1, str_from(reason));
	w->a.missing++;
}

static int aggregate_keep(struct aggregate_work *w, const char *name, const struct table *t, struct err *e)
{
	char reason[128];
	if (t->n_rows > SAVE_ROWS_MAX) {
		snprintf(reason, sizeof reason, "%zu rows, more than the %d that are kept: made when asked for (opscope report, opscope sql)", t->n_rows,
		         SAVE_ROWS_MAX);
		aggregate_leave_out(w, name, reason);
		return 0;
	}
	aggregate_describe_(w, name, t);
	w->a.tables++;
	w->a.rows += (int64_t)t->n_rows;
	return save_table(w->save, name, t, w->a.id, e);
}

/* Makes a report table, unless it is not kept. A report with a row for each event is not kept, since the file would be as large as its input again. A
 * grouping that combines with others is not kept, since each part would be a table, and none of these the combination that a user wants. */
static int aggregate_run(const struct aggregate_work *w, const struct catalog_entry *c, struct table *t, struct err *e)
{
	struct report_args args = w->args;
	args.group_by = c->group_by;
	if (report_is_per_event(c->report, c->group_by))
		return err_set(e, ERR_DATA, "one row an event: made when asked for (opscope report %s, opscope sql)", c->report->name);
	if (c->group_by && report_combines(c->report))
		return err_set(e, ERR_DATA, "made when asked for (opscope report %s --group-by=%s, opscope sql)", c->report->name, c->group_by);
	return report_run(c->report, w->p, &args, t, e);
}

/* Several threads make reports: none of them changes the profile (aggregate_prepare). */
static void aggregate_make(void *work, unsigned job)
{
	const struct aggregate_work *w = work;
	struct aggregate_made *m = &w->made[job];
	if (w->catalog.v[job].report->takes & REPORT_FILE)
		return;
	m->failed = aggregate_run(w, &w->catalog.v[job], &m->t, &m->e) < 0;
	m->has_table = !m->failed;
}

static int aggregate_take(void *work, unsigned job)
{
	struct aggregate_work *w = work;
	struct aggregate_made *m = &w->made[job];
	const struct catalog_entry *c = &w->catalog.v[job];
	int rc = 0;
	if (m->failed && m->e.code != ERR_DATA) {
		*w->e = m->e;
		return -1;
	}
	if (m->failed)
		aggregate_leave_out(w, catalog_name(&w->missing.arena, "report", c->name, NULL), m->e.msg);
	if (!m->has_table)
		return 0;
	for (struct table *part = &m->t; !rc && part; part = part->next)
		rc = aggregate_keep(w, catalog_name(&w->columns.arena, "report", c->name, part == &m->t ? NULL : part->name), part, w->e);
	table_release(&m->t);
	m->has_table = false;
	return rc;
}

/* All that reports add to a profile, before several threads ask it: what passes find of the part of the steps. False: reports have to be made one after the other. */
static bool aggregate_prepare(struct aggregate_work *w)
{
	const struct steps *s = w->p->steps;
	struct report_args args = w->args;
	struct err none;
	if (w->p->durations_only || (!args.has_steps && (s->whole_trace || !s->n)))
		return true;
	if (!args.has_steps) {
		args.has_steps = true;
		args.step_first = INT64_MIN;
		args.step_last = INT64_MAX;
	}
	return report_part(w->p, &args, UINT_MAX, &none);
}

static int keep_reports(struct aggregate_work *w, struct err *e)
{
	const unsigned wanted = together_threads(w->p), threads = wanted > 1 && aggregate_prepare(w) ? wanted : 1;
	catalog_init(&w->catalog);
	w->made = NEW_ARRAY(w->catalog.n, struct aggregate_made);
	w->e = e;
	int rc = together_run(w->p, &(struct crew_jobs){.n = w->catalog.n, .context = w, .make = aggregate_make, .take = aggregate_take}, threads);
	for (unsigned i = 0; i < w->catalog.n; i++)
		if (w->made[i].has_table)
			table_release(&w->made[i].t);
	mem_free(w->made);
	catalog_release(&w->catalog);
	return rc;
}

static int keep_findings(struct aggregate_work *w, struct err *e)
{
	struct findings f;
	struct table t;
	struct profile *part = w->args.has_steps ? slice_of_steps(w->p, w->args.step_first, w->args.step_last, e) : w->p;
	if (!part || detect_all(part, &f, e))
		return -1;
	findings_table(&f, &t);
	findings_release(&f);
	int rc = aggregate_keep(w, "report_findings", &t, e);
	table_release(&t);
	return rc;
}

/* Which steps it covers, and of their time what its summary says. ERR_USAGE or ERR_DATA when there are no such steps. */
static int aggregate_measure(struct aggregate_work *w, struct err *e)
{
	struct aggregation *a = &w->a;
	struct usage use;
	struct err none;
	if (steps_choose(w->p, w->args.key_op, e) < 0 || analysis_run(w->p, UINT_MAX, e) < 0)
		return -1;
	const struct steps *s = w->p->steps;
	if (w->args.has_steps && !slice_of_steps(w->p, w->args.step_first, w->args.step_last, e))
		return -1;
	a->first_step = a->last_step = ID_NONE;
	a->aggregated_steps = 0;
	a->total_steps = s->whole_trace ? 0 : s->n;
	for (unsigned i = 0; i < s->n && !s->whole_trace; i++) {
		const struct step *v = &s->v[i];
		if (w->args.has_steps && (v->number < w->args.step_first || v->number > w->args.step_last))
			continue;
		a->first_step = a->aggregated_steps++ ? a->first_step : v->number;
		a->last_step = v->number;
	}
	a->wall_ns = a->device_busy_ns = ID_NONE;
	if (w->p->durations_only || summary_usage(w->p, &w->args, &use, &none) < 0)
		return 0;
	a->wall_ns = use.window_ns;
	if (use.gpus)
		a->device_busy_ns = llround(use.device_busy_ns);
	return 0;
}

static int keep_all(struct aggregate_work *w, struct err *e)
{
	int rc = keep_reports(w, e);
	rc = rc ? rc : keep_findings(w, e);
	struct table *const about[] = {&w->columns, &w->notes, &w->missing};
	for (size_t i = 0; !rc && i < sizeof about / sizeof about[0]; i++)
		rc = save_table(w->save, about[i]->name, about[i], w->a.id, e);
	return rc ? rc : save_aggregation(w->save, &w->a, e);
}

/* "2..5", as it can be parsed again; "" = all. */
static struct str steps_text(const struct report_args *args, char text[48])
{
	int n = 0;
	if (!args->has_steps)
		return (struct str){"", 0};
	if (args->step_first != INT64_MIN)
		n = snprintf(text, 24, "%lld", (long long)args->step_first);
	if (args->step_first != args->step_last)
		n += snprintf(text + n, 24, args->step_last != INT64_MAX ? "..%lld" : "..", (long long)args->step_last);
	return (struct str){text, (size_t)n};
}

static int check_text(const char *what, struct str text, struct err *e)
{
	if (text.n > AGGREGATION_TEXT_MAX)
		return err_set(e, ERR_USAGE, "%s: at most %d bytes were expected", what, AGGREGATION_TEXT_MAX);
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ')
			return err_set(e, ERR_USAGE, "%s: text of one line was expected", what);
	return 0;
}

static int check_texts(const struct aggregate_spec *spec, struct err *e)
{
	return check_text("--name", spec->name, e) || check_text("--key-op", str_from(spec->args.key_op ? spec->args.key_op : ""), e) ? -1 : 0;
}

/* One aggregation into *s under the number `id`. */
static int aggregate(struct save *s, struct profile *p, const struct aggregate_spec *spec, int64_t id, struct aggregation *made, struct err *e)
{
	char steps[48];
	struct str key = str_from(spec->args.key_op ? spec->args.key_op : "");
	struct aggregate_work w = {.save = s, .p = p, .args = {.key_op = key.n ? key.p : NULL, .has_steps = spec->args.has_steps,
	                           .step_first = spec->args.step_first, .step_last = spec->args.step_last}};
	if (check_texts(spec, e))
		return -1;
	w.a = (struct aggregation){.id = id, .name = spec->name, .created = spec->created, .key_op = key, .steps = steps_text(&spec->args, steps),
	                           .opscope = STR(OPSCOPE_VERSION), .rules = spec->rules};
	aggregate_work_init(&w);
	const bool began = reuse_begin(p);
	int rc = aggregate_measure(&w, e) || keep_all(&w, e) ? -1 : 0;
	if (began)
		reuse_end(p);
	aggregate_work_release(&w);
	w.a.steps = (struct str){"", 0};
	if (made)
		*made = w.a;
	return rc;
}

/* The key op, steps and rules by which an aggregation of the input was made. */
static int spec_of(const struct aggregation *a, struct str rules, struct aggregate_spec *spec, struct err *e)
{
	*spec = (struct aggregate_spec){.name = a->name, .created = a->created, .rules = rules, .args.key_op = a->key_op.n ? a->key_op.p : NULL};
	return a->steps.n ? report_args_steps(&spec->args, a->steps, e) : 0;
}

static int import_all(struct save *s, struct profile *p, const struct aggregate_spec *spec, struct err *e)
{
	struct aggregate_spec of;
	if (!p->n_aggregations)
		return aggregate(s, p, spec, save_next_id(s, aggregate_stated_max(p)), NULL, e);
	for (unsigned i = 0; i < p->n_aggregations; i++)
		if (spec_of(&p->aggregation[i], spec->rules, &of, e) || aggregate(s, p, &of, p->aggregation[i].id, NULL, e))
			return -1;
	return 0;
}

/* The permissions that a file made of the input gets: who cannot read the input cannot read the file. */
static mode_t mode_of_input(const struct profile *p)
{
	enum { ALL = 0666 };
	struct stat st;
	if (remote_is(p->input_path.p))
		return S_IRUSR | S_IWUSR;
	return stat(p->input_path.p, &st) == 0 && S_ISREG(st.st_mode) ? (st.st_mode & ALL) | S_IRUSR | S_IWUSR : ALL;
}

static int aggregate_import_kept(struct profile *p, const char *path, const struct aggregate_spec *spec, struct err *e)
{
	if (analysis_run(p, UINT_MAX, e))
		return -1;
	struct save *s = save_begin(path, mode_of_input(p), profile_bytes(p), e);
	if (!s)
		return -1;
	if (save_profile(s, p, e) || import_all(s, p, spec, e)) {
		save_abort(s);
		return -1;
	}
	return save_commit(s, e);
}

/* What the passes make counts as made, too. */
int aggregate_import(struct profile *p, const char *path, const struct aggregate_spec *spec, struct err *e)
{
	const bool began = reuse_begin(p);
	int rc = aggregate_import_kept(p, path, spec, e);
	if (began)
		reuse_end(p);
	return rc;
}

int aggregate_add(struct profile *p, const char *path, const struct aggregate_spec *spec, struct aggregation *made, struct err *e)
{
	char text[48];
	struct aggregation like = {.key_op = str_from(spec->args.key_op ? spec->args.key_op : ""), .steps = steps_text(&spec->args, text), .rules = spec->rules,
	                           .opscope = STR(OPSCOPE_VERSION)};
	int64_t meanwhile = 0;
	struct save *s = save_add(path, p, e);
	if (!s)
		return -1;
	int rc = save_find_aggregation(s, &like, &meanwhile, e);
	if (rc || meanwhile || aggregate(s, p, spec, save_next_id(s, aggregate_stated_max(p)), made, e)) {
		save_abort(s);
		if (rc || !meanwhile)
			return -1;
		like.id = meanwhile;
		like.steps = arena_str(&p->arena, like.steps);
		if (made)
			*made = like;
		return 1;
	}
	return save_commit(s, e);
}

int aggregate_check(struct profile *p, const struct aggregate_spec *spec, struct err *e)
{
	struct step_window w;
	if (check_texts(spec, e) || steps_choose(p, spec->args.key_op, e) || analysis_run(p, PASS_NEST | PASS_CORRELATE | PASS_STEPS, e))
		return -1;
	if (p->n_aggregations >= AGGREGATIONS_MAX)
		return err_set(e, ERR_LIMIT, STR_FMT ": it holds %u aggregations, which are as many as there can be: delete some", STR_ARG(p->input_path),
		               p->n_aggregations);
	return spec->args.has_steps ? steps_window(p->steps, spec->args.step_first, spec->args.step_last, &w, e) : 0;
}

const struct aggregation *aggregate_find(const struct profile *p, const struct aggregate_spec *spec)
{
	char text[48];
	struct str key = str_from(spec->args.key_op ? spec->args.key_op : ""), steps = steps_text(&spec->args, text);
	for (unsigned i = 0; i < p->n_aggregations; i++) {
		const struct aggregation *a = &p->aggregation[i];
		if (str_eq(a->key_op, key) && str_eq(a->steps, steps) && str_eq(a->rules, spec->rules) && str_eqc(a->opscope, OPSCOPE_VERSION))
			return a;
	}
	return NULL;
}

int aggregate_once(struct profile *p, const char *path, const struct aggregate_spec *spec, const struct aggregation **same, struct aggregation *made,
                   struct err *e)
{
	*same = NULL;
	if (!p->reopened)
		return err_set(e, ERR_FORMAT, "%s: no file made by opscope: `opscope import %s -o FILE.opscope` makes one", path, path);
	if (aggregate_check(p, spec, e) < 0)
		return -1;
	*same = aggregate_find(p, spec);
	if (*same)
		return 0;
	struct aggregation *now = arena_alloc(&p->arena, sizeof *now);
	int rc = aggregate_add(p, path, spec, now, e);
	if (rc > 0)
		*same = now;
	else if (!rc && made)
		*made = *now;
	return rc < 0 ? -1 : 0;
}

void aggregate_describe(const struct aggregation *a, struct buf *out)
{
	buf_printf(out, "%lld (", (long long)a->id);
	if (a->name.n)
		buf_printf(out, "\"" STR_FMT "\", ", STR_ARG(a->name));
	if (a->key_op.n)
		buf_printf(out, "key op " STR_FMT ", ", STR_ARG(a->key_op));
	if (a->steps.n)
		buf_printf(out, "steps " STR_FMT ")", STR_ARG(a->steps));
	else
		buf_cstr(out, "all)");
}

int aggregate_delete(const struct profile *p, const char *path, int64_t id, struct err *e)
{
	bool own = false;
	for (unsigned i = 0; i < p->n_aggregations; i++)
		own |= p->aggregation[i].id == id;
	if (!own && id > 0 && id <= aggregate_stated_max(p))
		return err_set(e, ERR_USAGE, "%s: aggregation %lld is part of the data that was imported: it stays", path, (long long)id);
	struct save *s = save_add(path, p, e);
	if (!s)
		return -1;
	if (save_delete(s, id, e)) {
		save_abort(s);
		return -1;
	}
	return save_commit(s, e);
}

int64_t aggregate_stated_max(const struct profile *p)
{
	const struct stateds *t = &p->stated;
	uint32_t list = intern_find(&p->strings, STR("aggregations"));
	int64_t max = 0;
	for (uint32_t i = 0; i < t->rows.n; i++)
		if (t->tbl[i] == list && t->aggregation[i] > max)
			max = t->aggregation[i];
	return max < INT64_MAX / 2 ? max : 0;
}
