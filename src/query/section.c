#include "query/section.h"

#include <assert.h>

#include "base/mem.h"
#include "query/report.h"

static const char *const section_words[SECTION_N_WHENS] = {
#define SECTION_WORDS_(id, words) [WHEN_BIT_##id] = words,
	SECTION_WHENS(SECTION_WORDS_)
};

static bool has_grouping(const struct section_column *c, unsigned by)
{
	return (!c->by || (c->by & BY(by))) && !(c->not_by & BY(by));
}

/* Of a section that reports share, a report has the columns that any of its rows has. */
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

static bool is_named(const struct section *s, const char *name)
{
	return name && s->name ? strcmp(s->name, name) == 0 : name == s->name;
}

/* Whether any list of the section has the column for this grouping. */
static bool grouping_has(const struct report *r, const struct section_entry *e, unsigned by)
{
	for (const struct section *const *s = r->sections; *s; s++)
		for (unsigned i = 0; i < (*s)->n; i++)
			if (is_named(*s, e->section) && strcmp((*s)->columns[i].column.id, e->c->column.id) == 0 && (!(*s)->by || ((*s)->by & BY(by))) &&
			    has_grouping(&(*s)->columns[i], by))
				return true;
	return false;
}

/* Whether any list of the section is for this grouping: a grouping without the section says nothing about its columns. */
static bool grouping_has_section(const struct report *r, const char *name, unsigned by)
{
	for (const struct section *const *s = r->sections; *s; s++)
		if (is_named(*s, name) && (!(*s)->by || ((*s)->by & BY(by))))
			return true;
	return false;
}

/* The groupings that have the column, unless all have it. */
static void put_groupings(const struct report *r, const struct section_entry *e, struct buf *out)
{
	bool all = true;
	for (const struct report_variant *v = r->variants; v && v->group_by; v++)
		all &= grouping_has(r, e, (unsigned)v->by) || !grouping_has_section(r, e->section, (unsigned)v->by);
	const char *before = "--group-by=";
	for (const struct report_variant *v = r->variants; !all && v->group_by; v++)
		if (grouping_has(r, e, (unsigned)v->by)) {
			buf_printf(out, "%s%s", before, v->group_by);
			before = ", ";
		}
}

void section_put_when(const struct report *r, const struct section_entry *e, struct buf *out)
{
	size_t before = out->n;
	put_groupings(r, e, out);
	if (e->c->part)
		buf_printf(out, "%s--group-by=%s", out->n > before ? ", " : "", e->c->part);
	for (unsigned i = 0; i < SECTION_N_WHENS; i++)
		if (e->c->when & 1u << i)
			buf_printf(out, "%s%s", out->n > before ? ", " : "", section_words[i]);
}

bool section_find(const struct report *r, const char *name, struct str id, struct section_entry *out)
{
	for (const struct section *const *s = r->sections; s && *s; s++)
		for (unsigned i = 0; i < (*s)->n; i++)
			if (str_eqc(id, (*s)->columns[i].column.id) && is_named(*s, name) && report_has(r, &(*s)->columns[i])) {
				*out = (struct section_entry){name, &(*s)->columns[i]};
				return true;
			}
	return false;
}

struct section_entry *section_entries(const struct report *r, unsigned *n)
{
	unsigned all = 0;
	*n = 0;
	for (const struct section *const *s = r->sections; s && *s; s++)
		all += (*s)->n;
	struct section_entry *list = NEW_ARRAY(all + 1, struct section_entry), found;
	for (const struct section *const *s = r->sections; s && *s; s++)
		for (unsigned i = 0; i < (*s)->n; i++)
			if (section_find(r, (*s)->name, str_from((*s)->columns[i].column.id), &found) && found.c == &(*s)->columns[i])
				list[(*n)++] = found;
	return list;
}
