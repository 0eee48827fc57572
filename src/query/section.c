#include "query/section.h"

#include <assert.h>

#include "base/mem.h"
#include "query/report.h"

static const struct {
	const char *report, *ids;
} section_outside[] = {
#define OUTSIDE(report, ids) {report, ids},
#include "query/outside.def"
#undef OUTSIDE
};

static const char *const section_words[SECTION_N_WHENS] = {
#define SECTION_WORDS_(id, words) [WHEN_BIT_##id] = words,
	SECTION_WHENS(SECTION_WORDS_)
};

static bool has_grouping(const struct section_column *c, unsigned by)
{
	return (!c->by || (c->by & BY(by))) && !(c->not_by & BY(by));
}

/* Whether any row of the report has the column: reports may share a section. */
static bool report_has(const struct report *r, const struct section_column *c)
{
	const struct report_variant *v = r->variants;
	bool has = !v;
	for (; v && (v->group_by || v->parts || v->run); v++)
		has |= has_grouping(c, (unsigned)v->by);
	return has;
}

static bool is_there(const struct section_column *c, const struct report_args *args, unsigned have)
{
	int64_t n;
	return has_grouping(c, (unsigned)args->variant->by) && (!c->part || report_groups_by(args, c->part, &n)) && !(c->when & ~have);
}

void section_start(const struct section *s, const struct report_args *args, unsigned have, struct table *t)
{
	assert(!t->n_columns);
	for (unsigned i = 0; i < s->n; i++) {
		table_column(t, &s->columns[i].column);
		if (!is_there(&s->columns[i], args, have))
			table_leave_out(t, i);
	}
}

struct table *section_add(const struct section *s, const struct report_args *args, unsigned have, struct table *t)
{
	struct table *added = table_section(t, s->name, s->title);
	section_start(s, args, have, added);
	return added;
}

void section_leave_out(const struct section *s, unsigned column, struct table *t)
{
	assert(s->columns[column].when);
	table_leave_out(t, column);
}

struct column section_short_name(const struct column *of)
{
	return (struct column){.id = "short_name", .title = "Short name", .help = "name of the kernel without return type, name spaces, parameters and "
	                       "template noise, with what tells it from others", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_DETAIL, .short_of = of->id};
}

/* The column of short names that report_run adds for the first column of kernels; {0} = the section has no such column. */
static struct section_column short_name_of(const struct section *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->columns[i].column.flags & COLUMN_KERNEL) {
			struct section_column c = s->columns[i];
			c.column = section_short_name(&c.column);
			return c;
		}
	return (struct section_column){0};
}

/* Goes over all columns of a report: those that its sections declare, then those of its main table that the section "outside" has. */
struct section_walk {
	const struct report *report;
	const struct section *const *s; /* NULL or at NULL = behind the last */
	unsigned i;                     /* s->n = the short name */
	bool outside;
};

static struct section_walk section_walk_of(const struct report *r)
{
	return (struct section_walk){.report = r, .s = r->sections};
}

const char *section_outside_ids(const struct report *r)
{
	for (size_t i = 0; i < sizeof section_outside / sizeof section_outside[0]; i++)
		if (strcmp(section_outside[i].report, r->name) == 0)
			return section_outside[i].ids;
	return NULL;
}

/* Whether the section "outside" has this column of the main table: work outside the steps may have nothing for the sum. */
static bool make_outside(const struct report *r, struct section_entry *e)
{
	if (e->section || !str_has_word(section_outside_ids(r), str_from(e->c.column.id)))
		return false;
	e->section = "outside";
	e->c.when |= WHEN_OUTSIDE;
	return true;
}

/* The next column; false = there is none. */
static bool section_walk_next(struct section_walk *w, struct section_entry *e)
{
	while (w->s && *w->s) {
		const struct section *s = *w->s;
		*e = (struct section_entry){s->name, w->i < s->n ? s->columns[w->i] : short_name_of(s), s->by};
		if (w->i++ == s->n) {
			w->i = 0;
			w->s++;
		}
		bool is_column = e->c.column.id && report_has(w->report, &e->c) && (!w->outside || make_outside(w->report, e));
		if (!*w->s && !w->outside) {
			w->outside = true;
			w->s = w->report->sections;
		}
		if (is_column)
			return true;
	}
	return false;
}

static bool is_named(const struct section_entry *e, const char *name)
{
	return name && e->section ? strcmp(e->section, name) == 0 : name == e->section;
}

/* Whether any list of the section has a column for this grouping: this one, or if id is NULL any. A grouping without the section says nothing about its
 * columns. */
static bool grouping_has(const struct report *r, const char *section, const char *id, unsigned by)
{
	struct section_walk w = section_walk_of(r);
	struct section_entry e;
	while (section_walk_next(&w, &e))
		if (is_named(&e, section) && (!e.by || (e.by & BY(by))) && (!id || (strcmp(e.c.column.id, id) == 0 && has_grouping(&e.c, by))))
			return true;
	return false;
}

/* The groupings that have the column, unless all have it. */
static void put_groupings(const struct report *r, const struct section_entry *e, struct buf *out)
{
	bool all = true;
	for (const struct report_variant *v = r->variants; v && v->group_by; v++)
		all &= grouping_has(r, e->section, e->c.column.id, (unsigned)v->by) || !grouping_has(r, e->section, NULL, (unsigned)v->by);
	const char *before = "--group-by=";
	for (const struct report_variant *v = r->variants; !all && v->group_by; v++)
		if (grouping_has(r, e->section, e->c.column.id, (unsigned)v->by)) {
			buf_printf(out, "%s%s", before, v->group_by);
			before = ", ";
		}
}

void section_put_when(const struct report *r, const struct section_entry *e, struct buf *out)
{
	size_t before = out->n;
	put_groupings(r, e, out);
	if (e->c.part)
		buf_printf(out, "%s--group-by=%s", out->n > before ? "; " : "", e->c.part);
	for (unsigned i = 0; i < SECTION_N_WHENS; i++)
		if (e->c.when & 1u << i)
			buf_printf(out, "%s%s", out->n > before ? "; " : "", section_words[i]);
}

bool section_find(const struct report *r, const char *name, struct str id, struct section_entry *out)
{
	struct section_walk w = section_walk_of(r);
	while (section_walk_next(&w, out))
		if (is_named(out, name) && str_eqc(id, out->c.column.id))
			return true;
	return false;
}

static bool section_is_listed(const struct section_entry *list, unsigned n, const struct section_entry *e)
{
	for (unsigned i = 0; i < n; i++)
		if (is_named(&list[i], e->section) && strcmp(list[i].c.column.id, e->c.column.id) == 0)
			return true;
	return false;
}

struct section_entry *section_entries(const struct report *r, unsigned *n)
{
	struct section_walk w = section_walk_of(r);
	struct section_entry *list = NULL, e;
	unsigned cap = 0;
	*n = 0;
	while (section_walk_next(&w, &e))
		if (!section_is_listed(list, *n, &e))
			MEM_PUSH(list, *n, cap, e);
	return list;
}
