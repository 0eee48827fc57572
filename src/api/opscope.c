#include "api/api.h"

#include "base/mem.h"
#include "detect/detect.h"
#include "io/remote/remote.h"
#include "query/advice.h"
#include "query/diff_job.h"
#include "query/event_list.h"
#include "query/sql.h"
#include "query/timeline_list.h"

#include <limits.h>
#include <math.h>
#include <sys/stat.h>

const char *opscope_version(void)
{
	return OPSCOPE_VERSION;
}

static void note_file(struct opscope_profile *api)
{
	struct stat st;
	const char *path = api->p->input_path.p;
	if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	api->device = st.st_dev;
	api->inode = st.st_ino;
}

struct opening {
	const char *path;
	const struct opscope_options *o;
	struct opscope_profile *made;
	struct err e;
};

static void open_it(void *opening)
{
	struct opening *x = opening;
	x->path = remote_name(x->path);
	struct profile *p = api_open(x->path, x->o, &x->e);
	if (!p)
		return;
	x->made = NEW(struct opscope_profile);
	x->made->p = p;
	note_file(x->made);
}

struct opscope_profile *opscope_open(const char *path, const struct opscope_options *o, char *error, size_t error_size)
{
	struct opening x = {.path = path, .o = o};
	struct mem_pool blocks = {0};
	if (!path)
		err_set(&x.e, ERR_USAGE, "opscope_open: a path was expected, not NULL");
	else if (api_try(&blocks, open_it, &x, &x.e) < 0)
		err_prefix(&x.e, "%s", x.path);
	if (x.e.code) {
		mem_pool_drop(&blocks);
		api_error(&x.e, error, error_size);
		return NULL;
	}
	mem_disown(x.made);
	mem_pool_move(&x.made->p->blocks, &blocks);
	api_turns_begin(x.made);
	return x.made;
}

void opscope_close(struct opscope_profile *p)
{
	if (!p)
		return;
	api_turns_end(p);
	p->p->broken |= p->lost; /* half done, too */
	profile_free(p->p);
	mem_free(p);
}

const char *opscope_format(const struct opscope_profile *p)
{
	return p->p->format.p;
}

uint64_t opscope_events(const struct opscope_profile *p)
{
	return profile_events(p->p);
}

/* Another thread's report may be adding problems. The text of one is never moved. */
static unsigned read_problem(const struct opscope_profile *p, unsigned i, struct diag_entry *copy)
{
	struct opscope_profile *mine = (struct opscope_profile *)(uintptr_t)p;
	if (api_enter(mine, NULL) < 0)
		return 0;
	unsigned n = p->p->diags.n;
	if (i < n)
		*copy = p->p->diags.entry[i];
	api_leave(mine);
	return n;
}

unsigned opscope_problems(const struct opscope_profile *p)
{
	return read_problem(p, UINT_MAX, NULL);
}

const char *opscope_problem_text(const struct opscope_profile *p, unsigned i)
{
	struct diag_entry d;
	return i < read_problem(p, i, &d) ? d.message.p : NULL;
}

uint64_t opscope_problem_count(const struct opscope_profile *p, unsigned i)
{
	struct diag_entry d;
	return i < read_problem(p, i, &d) ? d.count : 0;
}

int opscope_problem_severity(const struct opscope_profile *p, unsigned i)
{
	struct diag_entry d;
	return i < read_problem(p, i, &d) ? (int)d.level : -1;
}

unsigned opscope_reports(void)
{
	unsigned n = 0;
	while (report_registry[n])
		n++;
	return n;
}

static const struct report *report_at(unsigned i)
{
	return i < opscope_reports() ? report_registry[i] : NULL;
}

const char *opscope_report_name(unsigned i)
{
	return report_at(i) ? report_at(i)->name : NULL;
}

const char *opscope_report_title(unsigned i)
{
	return report_at(i) ? report_at(i)->title : NULL;
}

const char *opscope_report_help(unsigned i)
{
	return report_at(i) ? report_at(i)->help : NULL;
}

const char *opscope_report_choice(unsigned i, const char *option, unsigned k)
{
	const struct report *r = report_at(i);
	if (r && strcmp(option, "group-by") == 0)
		return report_grouping(r, k);
	return r && strcmp(option, "compat") == 0 ? report_compat(r, k) : NULL;
}

int opscope_report_combines(unsigned i, const char *option)
{
	return report_at(i) && option && strcmp(option, "group-by") == 0 && report_combines(report_at(i));
}

/* Text in a table may lie in the profile, and may end without a NUL: here it gets both right, each string once. */
static void own_text(struct table *t, struct intern *text)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (t->data[c].col.type != CELL_STR)
			continue;
		for (size_t r = 0; r < t->n_rows; r++)
			if (!table_is_null(t, r, c)) {
				struct str *s = &t->data[c].cell[r].s;
				*s = intern_get(text, intern_str(text, *s));
			}
	}
}

static void opscope_choose_columns(struct opscope_table *t)
{
	t->column = NEW_ARRAY_RAW(t->t->n_columns, unsigned);
	for (unsigned c = 0; c < t->t->n_columns; c++)
		if (!(t->t->data[c].col.flags & COLUMN_INDENT))
			t->column[t->n_columns++] = c;
}

static const char *opscope_keep_text(struct intern *text, struct str s)
{
	return intern_get(text, intern_str(text, s)).p;
}

/* Takes over the rows of *t. */
static struct opscope_table *opscope_make_table(const struct table *t, struct str made_from)
{
	struct table *first = NEW(struct table);
	*first = *t;
	struct intern *text = NEW(struct intern);
	intern_init(text);
	const char *input = opscope_keep_text(text, made_from);
	if (first->heading)
		first->heading = opscope_keep_text(text, str_from(first->heading));
	struct opscope_table *head = NULL, **tail = &head;
	for (struct table *part = first; part; part = part->next) {
		own_text(part, text);
		*tail = NEW(struct opscope_table);
		**tail = (struct opscope_table){.t = part, .text = text, .input = input};
		opscope_choose_columns(*tail);
		tail = &(*tail)->next;
	}
	return head;
}

void api_disown_table(const struct opscope_table *t)
{
	if (!t)
		return;
	table_disown(t->t);
	mem_disown(t->t);
	intern_disown(t->text);
	mem_disown(t->text);
	for (const struct opscope_table *part = t; part; part = part->next) {
		mem_disown(part->column);
		mem_disown((void *)(uintptr_t)part);
	}
}

void opscope_table_free(struct opscope_table *t)
{
	if (!t)
		return;
	table_release(t->t);
	mem_free(t->t);
	intern_release(t->text);
	mem_free(t->text);
	for (struct opscope_table *next; t; t = next) {
		next = t->next;
		mem_free(t->column);
		mem_free(t);
	}
}

struct opscope_table *api_finish_table(struct table *t, const struct report *r, struct str input, const struct opscope_options *o, struct err *e)
{
	struct arrangement a = o ? o->arrange : (struct arrangement){0};
	int64_t limit = o ? api_number(o->limit) : -1;
	a.report = r;
	if (arrange_tables(t, t, &a, e) < 0) {
		table_release(t);
		return NULL;
	}
	for (struct table *s = t; s && limit > 0; s = s->next)
		table_limit(s, (size_t)limit);
	struct opscope_table *made = opscope_make_table(t, input);
	for (struct opscope_table *s = made; s; s = s->next)
		s->limited = limit >= 0;
	return made;
}

/* A question to a profile, of any kind. */
struct opscope_asking {
	struct opscope_profile *p;
	const struct opscope_options *o;
	struct report_args args;
	const struct report *report;
	const char *query;
	struct opscope_table *made;
	struct err e;
};

/* Where nothing was wrong with the question so far. */
static struct opscope_table *opscope_ask(struct opscope_asking *a, void (*run)(void *asking), char *error, size_t error_size)
{
	if (!a->e.code && api_try_with(a->p, run, a, &a->e) < 0)
		a->made = NULL;
	if (!a->made)
		api_error(&a->e, error, error_size);
	return a->made;
}

static void opscope_run_report(void *asking)
{
	struct opscope_asking *a = asking;
	struct table t;
	if (report_run(a->report, a->p->p, &a->args, &t, &a->e) == 0)
		a->made = api_finish_table(&t, a->args.compat ? NULL : a->report, a->p->p->input_path, a->o, &a->e);
	api_disown_table(a->made);
}

static void run_advice(void *asking)
{
	struct opscope_asking *a = asking;
	struct table t;
	if (advice_table(a->p->p, &a->args, &t, &a->e) == 0)
		a->made = api_finish_table(&t, NULL, a->p->p->input_path, a->o, &a->e);
	api_disown_table(a->made);
}

static void run_query(void *asking)
{
	struct opscope_asking *a = asking;
	struct table t;
	struct sql *s = sql_open(a->p->p, &a->args, &a->e);
	if (s && sql_run(s, str_from(a->query), &t, &a->e) == 0)
		a->made = api_finish_table(&t, NULL, a->p->p->input_path, a->o, &a->e);
	sql_close(s);
	api_disown_table(a->made);
}

static void opscope_run_event_list(void *asking)
{
	struct opscope_asking *a = asking;
	struct table t;
	if (event_list(a->p->p, &a->args, &t, &a->e) == 0)
		a->made = api_finish_table(&t, NULL, a->p->p->input_path, a->o, &a->e);
	api_disown_table(a->made);
}

static void opscope_run_timeline(void *asking)
{
	enum { OPSCOPE_TIMELINE_ROWS = 6000 };
	struct opscope_asking *a = asking;
	struct table t;
	int64_t most = a->o ? api_number(a->o->limit) : -1;
	if (timeline_list(a->p->p, &a->args, most > 0 ? (size_t)most : OPSCOPE_TIMELINE_ROWS, &t, &a->e) == 0)
		a->made = opscope_make_table(&t, a->p->p->input_path);
	api_disown_table(a->made);
}

struct opscope_table *opscope_report(struct opscope_profile *p, const char *name, const struct opscope_options *o,
                                     char *error, size_t error_size)
{
	struct opscope_asking a = {.p = p, .o = o, .args = o ? o->report : (struct report_args){0}};
	a.report = p && name ? report_find(str_from(name)) : NULL;
	if (!p || !name)
		err_set(&a.e, ERR_USAGE, "opscope_report: a profile and a name were expected, not NULL");
	else if (!a.report)
		err_set(&a.e, ERR_USAGE, "no report '%s'", name);
	if (o && api_number(o->limit) > 0 && !o->arrange.sort && !o->arrange.filter)
		a.args.row_limit = (size_t)api_number(o->limit);
	return opscope_ask(&a, opscope_run_report, error, error_size);
}

struct opscope_table *opscope_advise(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t error_size)
{
	struct opscope_asking a = {.p = p, .o = o, .args = o ? o->report : (struct report_args){0}};
	if (!p)
		err_set(&a.e, ERR_USAGE, "opscope_advise: a profile was expected, not NULL");
	else if (a.args.device)
		err_set(&a.e, ERR_USAGE, "advise: device is for reports: this is always of all devices");
	else if (detect_check(a.args.compat, &a.e) < 0)
		err_prefix(&a.e, "advise");
	return opscope_ask(&a, run_advice, error, error_size);
}

/* Of all events: there is a choice of steps alone. */
static struct opscope_asking opscope_ask_all(struct opscope_profile *p, const struct opscope_options *o, const char *what)
{
	struct opscope_asking a = {.p = p, .o = o, .args = o ? o->report : (struct report_args){0}};
	if (!p)
		err_set(&a.e, ERR_USAGE, "%s: a profile was expected, not NULL", what);
	else if (a.args.device || a.args.group_by || a.args.compat || a.args.per || a.args.top_level)
		err_set(&a.e, ERR_USAGE, "%s: device, group-by, compat, per and top-level are for reports: this is of every event", what);
	return a;
}

struct opscope_table *opscope_event_list(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t error_size)
{
	struct opscope_asking a = opscope_ask_all(p, o, "opscope_event_list");
	return opscope_ask(&a, opscope_run_event_list, error, error_size);
}

struct opscope_table *opscope_timeline(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t error_size)
{
	struct opscope_asking a = opscope_ask_all(p, o, "opscope_timeline");
	return opscope_ask(&a, opscope_run_timeline, error, error_size);
}

/* ---- two runs ---- */

struct opscope_comparing {
	struct opscope_profile *p;      /* of the side that is being made */
	const struct opscope_options *of, *o;
	struct diff_side *side[2];
	struct opscope_table *made;
	struct err e;
};

static void opscope_take_side(struct opscope_comparing *x, unsigned which)
{
	struct report_args args = x->of ? x->of->report : (struct report_args){0};
	if (!args.device && x->o)
		args.device = x->o->report.device;
	x->side[which] = diff_job_of_recording(x->p->p, &args, &x->e);
}

static void opscope_take_first(void *comparing)
{
	struct opscope_comparing *x = comparing;
	opscope_take_side(x, 0);
	if (x->side[0])
		diff_side_disown(x->side[0]);
}

static void opscope_take_second(void *comparing)
{
	struct opscope_comparing *x = comparing;
	const struct diff_ask ask = x->o ? x->o->diff : (struct diff_ask){0};
	struct table t;
	opscope_take_side(x, 1);
	if (x->side[1] && diff_table(x->side[0], x->side[1], &ask, &t, &x->e) == 0)
		x->made = api_finish_table(&t, NULL, x->p->p->input_path, x->o, &x->e);
	diff_side_free(x->side[1]);
	api_disown_table(x->made);
}

struct opscope_table *opscope_diff(struct opscope_profile *a, const struct opscope_options *of_a, struct opscope_profile *b, const struct opscope_options *of_b,
                                   const struct opscope_options *o, char *error, size_t error_size)
{
	struct opscope_comparing x = {.p = a, .of = of_a, .o = o};
	if (!a || !b)
		err_set(&x.e, ERR_USAGE, "opscope_diff: two profiles were expected, not NULL");
	else if (api_try_with(a, opscope_take_first, &x, &x.e) < 0)
		x.side[0] = NULL;
	if (x.side[0]) {
		x.p = b;
		x.of = of_b;
		if (api_try_with(b, opscope_take_second, &x, &x.e) < 0)
			x.made = NULL;
	}
	diff_side_free(x.side[0]);
	if (!x.made)
		api_error(&x.e, error, error_size);
	return x.made;
}

struct opscope_table *opscope_sql(struct opscope_profile *p, const char *query, const struct opscope_options *o,
                                  char *error, size_t error_size)
{
	struct opscope_asking a = {.p = p, .o = o, .args = o ? o->report : (struct report_args){0}, .query = query};
	if (!p || !query)
		err_set(&a.e, ERR_USAGE, "opscope_sql: a profile and a query were expected, not NULL");
	return opscope_ask(&a, run_query, error, error_size);
}

const char *opscope_table_name(const struct opscope_table *t)
{
	return t->t->name;
}

const char *opscope_table_title(const struct opscope_table *t)
{
	return t->t->title;
}

size_t opscope_table_rows(const struct opscope_table *t)
{
	return t->t->n_rows;
}

unsigned opscope_table_columns(const struct opscope_table *t)
{
	return t->n_columns;
}

unsigned opscope_table_notes(const struct opscope_table *t)
{
	return t->t->n_notes;
}

const char *opscope_table_note(const struct opscope_table *t, unsigned i)
{
	return i < t->t->n_notes ? t->t->notes[i].p : NULL;
}

const struct opscope_table *opscope_table_section(const struct opscope_table *t, unsigned i)
{
	const struct opscope_table *s = t->next;
	for (; s && i; i--)
		s = s->next;
	return s;
}

static const struct column *opscope_column_at(const struct opscope_table *t, unsigned c)
{
	return c < t->n_columns ? &t->t->data[t->column[c]].col : NULL;
}

const char *opscope_column_id(const struct opscope_table *t, unsigned c)
{
	return opscope_column_at(t, c) ? opscope_column_at(t, c)->id : NULL;
}

const char *opscope_column_title(const struct opscope_table *t, unsigned c)
{
	return opscope_column_at(t, c) ? opscope_column_at(t, c)->title : NULL;
}

const char *opscope_column_help(const struct opscope_table *t, unsigned c)
{
	return opscope_column_at(t, c) ? opscope_column_at(t, c)->help : NULL;
}

const char *opscope_column_unit(const struct opscope_table *t, unsigned c)
{
	return opscope_column_at(t, c) ? table_unit_name(opscope_column_at(t, c)->unit) : NULL;
}

enum opscope_type opscope_column_type(const struct opscope_table *t, unsigned c)
{
	static const enum opscope_type types[] = {
		[CELL_STR] = OPSCOPE_TEXT, [CELL_I64] = OPSCOPE_INTEGER, [CELL_F64] = OPSCOPE_REAL, [CELL_BOOL] = OPSCOPE_BOOLEAN,
	};
	return opscope_column_at(t, c) ? types[opscope_column_at(t, c)->type] : OPSCOPE_TEXT;
}

int opscope_column_find(const struct opscope_table *t, const char *id)
{
	int found = table_find_column(t->t, str_from(id));
	for (unsigned c = 0; c < t->n_columns && found >= 0; c++)
		if (t->column[c] == (unsigned)found)
			return (int)c;
	return -1;
}

struct sorting {
	struct opscope_table *t;
	const char *column;
	bool descending;
	int rc;
	struct err e;
};

static void sort_it(void *sorting)
{
	struct sorting *s = sorting;
	s->rc = table_sort(s->t->t, str_from(s->column), s->descending, &s->e);
}

int opscope_table_sort(struct opscope_table *t, const char *column_id, int descending, char *error, size_t error_size)
{
	struct sorting s = {.t = t, .column = column_id, .descending = descending != 0};
	struct mem_pool blocks = {0};
	if (api_try(&blocks, sort_it, &s, &s.e) < 0)
		s.rc = -1;
	mem_pool_drop(&blocks);
	return s.rc ? api_error(&s.e, error, error_size) : 0;
}

/* The cell, if it has a value of a type in `types` (1 << type). */
static const union cell *cell_at(const struct opscope_table *t, size_t row, unsigned c, unsigned types)
{
	if (c >= t->n_columns || row >= t->t->n_rows)
		return NULL;
	const struct column_data *d = &t->t->data[t->column[c]];
	return d->set[row] && (types >> d->col.type & 1) ? &d->cell[row] : NULL;
}

int opscope_table_is_null(const struct opscope_table *t, size_t row, unsigned c)
{
	return !cell_at(t, row, c, ~0u);
}

int64_t opscope_table_integer(const struct opscope_table *t, size_t row, unsigned c)
{
	const union cell *cell = cell_at(t, row, c, 1u << CELL_I64 | 1u << CELL_BOOL);
	return cell ? cell->i : 0;
}

double opscope_table_real(const struct opscope_table *t, size_t row, unsigned c)
{
	const union cell *real = cell_at(t, row, c, 1u << CELL_F64), *integer = cell_at(t, row, c, 1u << CELL_I64);
	return real ? real->f : integer ? (double)integer->i : NAN;
}

const char *opscope_table_text(const struct opscope_table *t, size_t row, unsigned c)
{
	const union cell *cell = cell_at(t, row, c, 1u << CELL_STR);
	return cell ? cell->s.p : "";
}

size_t opscope_table_text_size(const struct opscope_table *t, size_t row, unsigned c)
{
	const union cell *cell = cell_at(t, row, c, 1u << CELL_STR);
	return cell ? cell->s.n : 0;
}
