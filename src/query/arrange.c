#include "query/arrange.h"

#include "base/buf.h"
#include "query/filter_note.h"
#include "query/report.h"

/* Numbers are sorted from the largest, text from A. */
static int sort_by(struct table *t, const char *column, struct err *e)
{
	char direction = *column == '+' || *column == '-' ? *column++ : 0;
	int col = table_find_column(t, str_from(column));
	bool text = col >= 0 && t->data[col].col.type == CELL_STR;
	if (col >= 0)
		t->data[col].col.flags |= COLUMN_ASKED;
	return table_sort(t, str_from(column), direction ? direction == '-' : !text, e);
}

/* A script that names columns must not break where an input lacks one: a missing column is empty, and a note says so. */
static void add_absent_columns(struct table *t, const struct table *first, const struct arrangement *a)
{
	struct str rest = str_from(a->columns), id;
	struct buf note = {0};
	while (a->report && str_split(&rest, ',', &id)) {
		struct section_entry absent;
		if (!section_find(a->report, t == first ? NULL : t->name, id, &absent) || table_find_column(t, id) >= 0)
			continue;
		table_column(t, &absent.c.column);
		buf_printf(&note, "%s%s (", note.n ? ", " : "", absent.c.column.id);
		section_put_when(a->report, &absent, &note);
		buf_char(&note, ')');
	}
	if (note.n)
		table_warn(t, "not in this table, and so empty: " STR_FMT, STR_ARG(buf_view(&note)));
	buf_release(&note);
}

/* Notes that nothing is left: an empty table alone would look like an answer. */
static void filter_tables(struct table *first, struct table *chosen, struct str text)
{
	bool had_rows = false, has_rows = false;
	for (struct table *t = first; t; t = t->next) {
		had_rows |= t == chosen && t->n_rows;
		table_filter(t, text);
		has_rows |= t->n_rows > 0 && table_has_text(t);
	}
	if (had_rows && (chosen == first ? !has_rows : !chosen->n_rows))
		filter_note(chosen, text);
}

int arrange_tables(struct table *first, struct table *chosen, const struct arrangement *a, struct err *e)
{
	if (a->columns)
		add_absent_columns(chosen, first, a);
	if (a->sort && sort_by(chosen, a->sort, e) < 0)
		return err_prefix(e, "--sort");
	if (a->filter)
		filter_tables(first, chosen, str_from(a->filter));
	for (struct table *s = first; s; s = s->next) {
		if (a->time_unit && table_show_in(s, a->time_unit, e) < 0)
			return err_prefix(e, "--time-unit");
	}
	if (a->max_width && table_max_width(chosen, str_from(a->max_width), e) < 0)
		return err_prefix(e, "--max-width");
	if (a->title)
		chosen->heading = a->title;
	if (a->columns && table_select(chosen, str_from(a->columns), e) < 0)
		return err_prefix(e, "--columns");
	return 0;
}
