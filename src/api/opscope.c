#include "opscope/opscope.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "input/input.h"
#include "report/report.h"
#include "report/sql.h"

struct opscope_options {
	struct input_options input;
	struct report_args report;
	struct arena arena;     /* owns the values */
};

struct opscope_profile {
	struct profile *p;
	pthread_mutex_t lock;   /* reports may run analysis passes, which add to *p */
};

/* The sections are opscope_tables in a row behind the first. */
struct opscope_table {
	struct table *t;
	struct opscope_table *next;
	struct intern *text;    /* owns all text of the cells, NUL-terminated; the first table's */
};

static int give_error(const struct err *e, char *error, size_t size)
{
	if (error && size)
		snprintf(error, size, "%s", e->msg);
	return -1;
}

const char *opscope_version(void)
{
	return OPSCOPE_VERSION;
}

struct opscope_options *opscope_options_new(void)
{
	return NEW(struct opscope_options);
}

static void set_aggregation(struct opscope_options *o, const char *value, struct err *e)
{
	int64_t id;
	if (str_to_i64(str_from(value), &id) && id > 0)
		o->report.aggregation = id;
	else
		err_set(e, ERR_USAGE, "aggregation=%s: a number from 1 on was expected", value);
}

static void set_flag(bool *flag, const char *name, const char *value, struct err *e)
{
	if (strcmp(value, "0") == 0 || strcmp(value, "1") == 0)
		*flag = *value == '1';
	else
		err_set(e, ERR_USAGE, "%s=%s: 0 or 1 was expected", name, value);
}

int opscope_options_set(struct opscope_options *o, const char *name, const char *value, char *error, size_t error_size)
{
	struct err e = {0};
	if (!o || !name || !value) {
		err_set(&e, ERR_USAGE, "opscope_options_set: options, a name and a value were expected, not NULL");
		return give_error(&e, error, error_size);
	}
	const char *copy = arena_str(&o->arena, str_from(value)).p;
	if (strcmp(name, "input-format") == 0)
		o->input.format = copy;
	else if (strcmp(name, "group-by") == 0)
		o->report.group_by = copy;
	else if (strcmp(name, "compat") == 0)
		o->report.compat = copy;
	else if (strcmp(name, "top-level") == 0)
		set_flag(&o->report.top_level, name, copy, &e);
	else if (strcmp(name, "device") == 0)
		o->report.device = copy;
	else if (strcmp(name, "aggregation") == 0)
		set_aggregation(o, copy, &e);
	else if (strcmp(name, "key-op") == 0)
		o->report.key_op = copy;
	else if (strcmp(name, "steps") == 0)
		report_args_steps(&o->report, str_from(copy), &e);
	else
		err_set(&e, ERR_USAGE, "no option '%s'; there are: input-format, group-by, compat, top-level, steps, key-op, aggregation, device", name);
	return e.code ? give_error(&e, error, error_size) : 0;
}

void opscope_options_free(struct opscope_options *o)
{
	if (!o)
		return;
	arena_release(&o->arena);
	mem_free(o);
}

struct opscope_profile *opscope_open(const char *path, const struct opscope_options *o, char *error, size_t error_size)
{
	struct err e = {0};
	if (!path) {
		err_set(&e, ERR_USAGE, "opscope_open: a path was expected, not NULL");
		give_error(&e, error, error_size);
		return NULL;
	}
	struct profile *p = input_open(path, o ? &o->input : NULL, &e);
	if (!p) {
		give_error(&e, error, error_size);
		return NULL;
	}
	struct opscope_profile *api = NEW(struct opscope_profile);
	api->p = p;
	pthread_mutex_init(&api->lock, NULL);
	return api;
}

void opscope_close(struct opscope_profile *p)
{
	if (!p)
		return;
	profile_free(p->p);
	pthread_mutex_destroy(&p->lock);
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
	pthread_mutex_t *lock = &((struct opscope_profile *)(uintptr_t)p)->lock;
	pthread_mutex_lock(lock);
	unsigned n = p->p->diags.n;
	if (i < n)
		*copy = p->p->diags.entry[i];
	pthread_mutex_unlock(lock);
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
	const char *const *list = !r                              ? NULL
	                          : strcmp(option, "group-by") == 0 ? r->group_by
	                          : strcmp(option, "compat") == 0   ? r->compat
	                                                          : NULL;
	for (; list && *list && k; k--)
		list++;
	return list ? *list : NULL;
}

int opscope_report_combines(unsigned i, const char *option)
{
	return report_at(i) && option && strcmp(option, "group-by") == 0 && report_at(i)->group_combines;
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

/* Takes over the rows of *t. */
static struct opscope_table *make_table(const struct table *t)
{
	struct table *first = NEW(struct table);
	*first = *t;
	struct intern *text = NEW(struct intern);
	intern_init(text);
	struct opscope_table *head = NULL, **tail = &head;
	for (struct table *part = first; part; part = part->next) {
		own_text(part, text);
		*tail = NEW(struct opscope_table);
		**tail = (struct opscope_table){part, NULL, text};
		tail = &(*tail)->next;
	}
	return head;
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
		mem_free(t);
	}
}

struct opscope_table *opscope_report(struct opscope_profile *p, const char *name, const struct opscope_options *o,
                                     char *error, size_t error_size)
{
	static const struct report_args defaults = {0};
	const struct report *r = p && name ? report_find(str_from(name)) : NULL;
	struct err e = {0};
	struct table t;
	if (!r) {
		if (p && name)
			err_set(&e, ERR_USAGE, "no report '%s'", name);
		else
			err_set(&e, ERR_USAGE, "opscope_report: a profile and a name were expected, not NULL");
		give_error(&e, error, error_size);
		return NULL;
	}
	pthread_mutex_lock(&p->lock);
	int rc = report_run(r, p->p, o ? &o->report : &defaults, &t, &e);
	struct opscope_table *made = rc == 0 ? make_table(&t) : NULL;
	pthread_mutex_unlock(&p->lock);
	if (!made)
		give_error(&e, error, error_size);
	return made;
}

struct opscope_table *opscope_sql(struct opscope_profile *p, const char *query, const struct opscope_options *o,
                                  char *error, size_t error_size)
{
	static const struct report_args defaults = {0};
	struct err e = {0};
	struct table t;
	if (!p || !query) {
		err_set(&e, ERR_USAGE, "opscope_sql: a profile and a query were expected, not NULL");
		give_error(&e, error, error_size);
		return NULL;
	}
	pthread_mutex_lock(&p->lock);
	struct sql *s = sql_open(p->p, o ? &o->report : &defaults, &e);
	int rc = s ? sql_run(s, str_from(query), &t, &e) : -1;
	struct opscope_table *made = rc == 0 ? make_table(&t) : NULL;
	sql_close(s);
	pthread_mutex_unlock(&p->lock);
	if (!made)
		give_error(&e, error, error_size);
	return made;
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
	return t->t->n_columns;
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

static const struct column *column_at(const struct opscope_table *t, unsigned c)
{
	return c < t->t->n_columns ? &t->t->data[c].col : NULL;
}

const char *opscope_column_id(const struct opscope_table *t, unsigned c)
{
	return column_at(t, c) ? column_at(t, c)->id : NULL;
}

const char *opscope_column_title(const struct opscope_table *t, unsigned c)
{
	return column_at(t, c) ? column_at(t, c)->title : NULL;
}

const char *opscope_column_help(const struct opscope_table *t, unsigned c)
{
	return column_at(t, c) ? column_at(t, c)->help : NULL;
}

const char *opscope_column_unit(const struct opscope_table *t, unsigned c)
{
	return column_at(t, c) ? table_unit_name(column_at(t, c)->unit) : NULL;
}

enum opscope_type opscope_column_type(const struct opscope_table *t, unsigned c)
{
	static const enum opscope_type types[] = {
		[CELL_STR] = OPSCOPE_TEXT, [CELL_I64] = OPSCOPE_INTEGER, [CELL_F64] = OPSCOPE_REAL, [CELL_BOOL] = OPSCOPE_BOOLEAN,
	};
	return column_at(t, c) ? types[column_at(t, c)->type] : OPSCOPE_TEXT;
}

int opscope_column_find(const struct opscope_table *t, const char *id)
{
	return table_find_column(t->t, str_from(id));
}

int opscope_table_sort(struct opscope_table *t, const char *column_id, int descending, char *error, size_t error_size)
{
	struct err e = {0};
	return table_sort(t->t, str_from(column_id), descending != 0, &e) ? give_error(&e, error, error_size) : 0;
}

int opscope_table_is_null(const struct opscope_table *t, size_t row, unsigned c)
{
	return c >= t->t->n_columns || row >= t->t->n_rows || table_is_null(t->t, row, c);
}

int64_t opscope_table_integer(const struct opscope_table *t, size_t row, unsigned c)
{
	if (opscope_table_is_null(t, row, c))
		return 0;
	enum cell_type type = t->t->data[c].col.type;
	return type == CELL_I64 || type == CELL_BOOL ? table_i64(t->t, row, c) : 0;
}

double opscope_table_real(const struct opscope_table *t, size_t row, unsigned c)
{
	if (opscope_table_is_null(t, row, c))
		return NAN;
	enum cell_type type = t->t->data[c].col.type;
	return type == CELL_I64 || type == CELL_F64 ? table_f64(t->t, row, c) : NAN;
}

const char *opscope_table_text(const struct opscope_table *t, size_t row, unsigned c)
{
	if (opscope_table_is_null(t, row, c) || t->t->data[c].col.type != CELL_STR)
		return "";
	return table_str(t->t, row, c).p;
}
