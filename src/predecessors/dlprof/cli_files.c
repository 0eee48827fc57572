/* DLProf's files. CSV: a line with the title, one with the columns' titles, then rows; text in quotes, numbers, yes and no without. The
 * summary is several such tables with an empty line between, all without quotes. JSON, whose layout DLProf documents nowhere: the title,
 * and each row as an object by columns' titles. */
#include "predecessors/dlprof/cli_dlprof.h"

#include "base/json_text.h"
#include "base/search.h"
#include "base/utf8.h"
#include "io/atomic.h"
#include "render/csv_text.h"
#include "render/number.h"

enum { PIECE_BYTES = 1 << 20 };

struct cli_files_file {
	struct atomic_file f;
	struct buf b;
	bool failed;
	struct err *e;
};

static void flush(struct cli_files_file *f, bool all)
{
	if (f->failed || (!all && f->b.n < PIECE_BYTES))
		return;
	f->failed = f->b.n && atomic_write(&f->f, buf_view(&f->b), f->e) < 0;
	buf_clear(&f->b);
}

/* Words that DLProf does not quote; we do where a reader would stumble. */
static bool cli_files_is_bare(const struct column *c, struct str s)
{
	if (strcmp(c->id, "direction") != 0 && strcmp(c->id, "data_type") != 0 && strcmp(c->id, "data_types") != 0)
		return false;
	return !ANY_WHERE(i, 0, s.n, s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r');
}

/* A number or truth value; the same in both formats, but for the words. */
static void cli_files_put_value(struct buf *b, const struct table *t, size_t row, unsigned c, const char *const truth[2])
{
	switch (t->data[c].col.type) {
	case CELL_I64: buf_i64(b, table_i64(t, row, c)); break;
	case CELL_F64: number_fixed(b, table_f64(t, row, c), 1, false); break;
	case CELL_BOOL: buf_cstr(b, truth[table_i64(t, row, c) != 0]); break;
	case CELL_STR: break;
	}
}

static void put_csv_cell(struct buf *b, const struct table *t, size_t row, unsigned c, bool quotes)
{
	static const char *const truth[] = {"no", "yes"};
	const struct column *col = &t->data[c].col;
	if (col->type == CELL_STR) {
		struct str s = table_is_null(t, row, c) ? STR("") : table_str(t, row, c);
		if (!quotes || cli_files_is_bare(col, s))
			utf8_put_valid(b, s);
		else
			csv_put_quoted(b, s);
	} else if (!table_is_null(t, row, c)) {
		cli_files_put_value(b, t, row, c, truth);
	}
}

static void put_json_cell(struct buf *b, const struct table *t, size_t row, unsigned c)
{
	static const char *const truth[] = {"false", "true"};
	if (t->data[c].col.type == CELL_STR)
		json_put_string(b, table_is_null(t, row, c) ? STR("") : table_str(t, row, c));
	else if (table_is_null(t, row, c))
		buf_cstr(b, "null");
	else
		cli_files_put_value(b, t, row, c, truth);
}

static void put_json_key(struct buf *b, const char *title)
{
	json_put_string(b, str_from(title));
	buf_cstr(b, ": ");
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static void csv_rows(struct cli_files_file *f, const struct table *t, bool quotes)
{
	for (size_t r = 0; r < t->n_rows; r++) {
		for (unsigned c = 0; c < t->n_columns; c++) {
			if (c)
				buf_char(&f->b, ',');
			put_csv_cell(&f->b, t, r, c, quotes);
		}
		buf_char(&f->b, '\n');
		flush(f, false);
	}
}

/* `first`: what stands above the first column. */
static void csv_titles(struct cli_files_file *f, const struct table *t, const char *first)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		buf_printf(&f->b, "%s%s", c ? "," : "", c ? t->data[c].col.title : first);
	buf_char(&f->b, '\n');
}

static void json_rows(struct cli_files_file *f, const struct table *t, const char *first)
{
	buf_char(&f->b, '[');
	for (size_t r = 0; r < t->n_rows; r++) {
		buf_cstr(&f->b, r ? ",\n{" : "\n{");
		for (unsigned c = 0; c < t->n_columns; c++) {
			buf_cstr(&f->b, c ? ", " : "");
			put_json_key(&f->b, c ? t->data[c].col.title : first);
			put_json_cell(&f->b, t, r, c);
		}
		buf_char(&f->b, '}');
		flush(f, false);
	}
	buf_cstr(&f->b, "\n]");
}

static void cli_files_put_table(struct cli_files_file *f, const struct table *t, const char *title, enum dlprof_format format)
{
	const char *first = t->n_columns ? t->data[0].col.title : "";
	if (format == DLPROF_CSV) {
		buf_printf(&f->b, "%s\n", title);
		csv_titles(f, t, first);
		csv_rows(f, t, true);
		return;
	}
	buf_cstr(&f->b, "{\"title\": ");
	json_put_string(&f->b, str_from(title));
	buf_cstr(&f->b, ",\n\"rows\": ");
	json_rows(f, t, first);
	buf_cstr(&f->b, "}\n");
}

/* --- the summary ------------------------------------------------------------------------------------------------ */

/* Sections: names and values (the first), one row, or rows with names. */
enum shape { NAMED_VALUES, ONE_ROW, ROWS };

static enum shape cli_files_shape_of(const struct table *t, const struct table *first)
{
	return t == first ? NAMED_VALUES : t->n_rows == 1 && t->data[0].col.type != CELL_STR ? ONE_ROW : ROWS;
}

/* Only where one was given: the profile's own name is that of an earlier run. */
static bool is_name_row(const struct table *t, size_t row)
{
	return str_eqc(table_str(t, row, 0), "Profile Name");
}

static void csv_section(struct cli_files_file *f, const struct table *t, enum shape shape, const char *profile_name)
{
	buf_printf(&f->b, "%s\n", t->title);
	if (shape == ROWS) {
		csv_titles(f, t, "");
		csv_rows(f, t, false);
		return;
	}
	if (shape == NAMED_VALUES && profile_name)
		buf_printf(&f->b, "Profile Name,%s\n", profile_name);
	for (size_t r = 0; shape == NAMED_VALUES && r < t->n_rows; r++) {
		if (is_name_row(t, r) && profile_name)
			continue;
		put_csv_cell(&f->b, t, r, 0, false);
		buf_char(&f->b, ',');
		put_csv_cell(&f->b, t, r, 1, false);
		buf_char(&f->b, '\n');
	}
	for (unsigned c = 0; shape == ONE_ROW && c < t->n_columns; c++) {
		buf_printf(&f->b, "%s,", t->data[c].col.title);
		put_csv_cell(&f->b, t, 0, c, false);
		buf_char(&f->b, '\n');
	}
}

static void json_section(struct cli_files_file *f, const struct table *t, enum shape shape, const char *profile_name)
{
	const char *comma = "\n";
	put_json_key(&f->b, t->title);
	if (shape == ROWS) {
		json_rows(f, t, "");
		return;
	}
	buf_char(&f->b, '{');
	if (shape == NAMED_VALUES && profile_name) {
		buf_cstr(&f->b, comma);
		put_json_key(&f->b, "Profile Name");
		json_put_string(&f->b, str_from(profile_name));
		comma = ",\n";
	}
	for (size_t i = 0; i < (shape == ONE_ROW ? t->n_columns : t->n_rows); i++) {
		if (shape == NAMED_VALUES && is_name_row(t, i) && profile_name)
			continue;
		buf_cstr(&f->b, comma);
		comma = ",\n";
		if (shape == ONE_ROW) {
			put_json_key(&f->b, t->data[i].col.title);
			put_json_cell(&f->b, t, 0, (unsigned)i);
		} else {
			json_put_string(&f->b, table_str(t, i, 0));
			buf_cstr(&f->b, ": ");
			put_json_cell(&f->b, t, i, 1);
		}
	}
	buf_cstr(&f->b, "\n}");
}

static void put_summary(struct cli_files_file *f, const struct table *t, enum dlprof_format format, const char *profile_name)
{
	if (format == DLPROF_JSON)
		buf_char(&f->b, '{');
	for (const struct table *s = t; s; s = s->next) {
		if (format == DLPROF_CSV) {
			buf_cstr(&f->b, s == t ? "" : "\n");
			csv_section(f, s, cli_files_shape_of(s, t), profile_name);
		} else {
			buf_cstr(&f->b, s == t ? "" : ",\n");
			json_section(f, s, cli_files_shape_of(s, t), profile_name);
		}
	}
	if (format == DLPROF_JSON)
		buf_cstr(&f->b, "}\n");
}

int dlprof_write(const struct table *t, const struct dlprof_report *r, enum dlprof_format format, const char *profile_name,
                 const char *path, struct err *e)
{
	struct cli_files_file f = {.e = e};
	if (atomic_begin(&f.f, path, e))
		return -1;
	if (*r->title)
		cli_files_put_table(&f, t, r->title, format);
	else
		put_summary(&f, t, format, profile_name);
	flush(&f, true);
	buf_release(&f.b);
	return f.failed ? atomic_abort(&f.f) : atomic_commit(&f.f, e);
}
