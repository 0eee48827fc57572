/* A table: what every report, detector list and SQL query returns. Typed columns with id, title, unit and help; cells may
 * be null ("unknown"); notes say what the numbers do not cover. Renderers turn it into text, CSV, JSON or HTML; nothing
 * else prints numbers.
 *
 * Life cycle: table_init, table_column... , then for each row table_row followed by table_set_*, table_note...,
 * table_release. Unset cells are null.
 * A report may give several tables: the first is the main one (what CSV prints), the others hang on `next` and are its
 * sections, each with its own name. */
#ifndef OPSCOPE_BASE_TABLE_H
#define OPSCOPE_BASE_TABLE_H

#include "base/arena.h"
#include "base/column.h"
#include "base/err.h"

union cell {
	int64_t i;
	double f;
	struct str s;
};

struct column_data {
	struct column col;
	union cell *cell;
	uint8_t *set;      /* 1 = has a value, 0 = null */
	bool left_out;     /* table_drop_left_out takes it away */
};

/* Of a table whose rows leave it while it is made, so that it need not hold all of them: the owner sets it on an empty table, and takes
 * the last rows from the table itself. */
struct table;
struct table_drain {
	void (*put)(void *context, const struct table *rows); /* the rows are gone when it returns */
	void *context;
	struct arena texts; /* table_set_str_copy and table_set_fmt: of the rows that are in the table */
};

enum table_names { NAMES_AS_THEY_ARE, NAMES_SHORT, NAMES_FULL };

struct table {
	const char *name;  /* report or section name, snake or kebab case */
	const char *title; /* a human heading */
	struct column_data *data;
	unsigned n_columns, cap_columns;
	size_t n_rows, cap_rows;
	struct str *notes;
	unsigned n_notes, cap_notes;
	uint64_t warnings;    /* bit i: note i, of the first 64, changes how the numbers are to be read */
	enum table_notes { NOTES_AS_THEY_ARE, NOTES_BRIEF, NOTES_FULL } shown_notes; /* text and HTML: one line, or all, in units that suit the table */
	bool notes_answer;    /* its notes are part of the answer: all are shown */
	struct arena arena;   /* owns copied strings and notes */
	struct table_drain *drain; /* NULL = the table keeps its rows */
	struct table *next;   /* further sections, owned; NULL = none */
	bool lead;            /* a section that is read first: text and HTML show it before the main table */
	bool folded;          /* a section that text shows on request alone */
	bool curve;           /* its rows are points over the first column, in order of it: of many, text shows those that keep the shape */
	bool whole;           /* its rows are the parts of a sum: table_limit leaves all of them */
	size_t hidden_rows;   /* rows that are not here, so that a renderer can say "... and N more" */
	bool thinned;         /* these lie between the others, which a note says: there are not "N more" behind them */
	size_t held_rows;     /* rows n_rows .. held_rows - 1 were cut by table_limit, table_filter or table_keep and are still there, for
	                       * layouts that measure all rows; below n_rows when none was */
	enum table_names names; /* text and HTML, of columns of full and of short names: which the one that is shown holds */
	const char *heading;  /* what the user wants above it in place of the title; NULL = the title */
	const char *layout;   /* text in the form of a predecessor: name of a render/layout.h, "-" and a version of it; NULL = as all tables */
	const char *banner;   /* a line that such a layout prints above the columns; NULL = none */
};

void table_init(struct table *t, const char *name, const char *title);
void table_release(struct table *t); /* and its sections */
/* What it and its sections hold outlives the mem_try that it was made in (mem_disown). */
void table_disown(const struct table *t);

/* Makes *out the same table with the same sections, to be sorted and cut; texts are those of *t, which must outlive it. */
void table_copy(struct table *out, const struct table *t);

/* Ends the drain: the texts of the last rows are the table's from then on. */
void table_end_drain(struct table *t);

/* Appends a section: a new, initialised table that *t owns. */
struct table *table_section(struct table *t, const char *name, const char *title);

/* Adds a column and returns its index; it is null in the rows that there are. The strings in *c must outlive the table. */
unsigned table_column(struct table *t, const struct column *c);
#define TABLE_COLUMN(t, ...) table_column((t), &(struct column){__VA_ARGS__})
/* Adds all of a fixed list; the first gets index 0. */
void table_columns(struct table *t, const struct column *list, unsigned n);

/* Columns that stay countable while rows are put, so that a column has one number in all tables of its kind: table_leave_out marks one,
 * table_drop_left_out removes those that are marked, with their cells, in *t and its sections. */
void table_leave_out(struct table *t, unsigned col);
void table_drop_left_out(struct table *t);

/* Starts a row and returns its number; cells are then set on it with table_set_* (on the last row). What fills a table with a drain
 * looks at no row but the last, and counts no rows. */
size_t table_row(struct table *t);
void table_set_i64(struct table *t, unsigned col, int64_t v);
void table_set_f64(struct table *t, unsigned col, double v); /* NaN and infinities become null */
void table_set_bool(struct table *t, unsigned col, bool v);
void table_set_str(struct table *t, unsigned col, struct str s);      /* borrowed: s must outlive the table */
void table_set_str_copy(struct table *t, unsigned col, struct str s); /* copied; lives as long as the row */
void table_set_fmt(struct table *t, unsigned col, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A remark printed under the table: reconciliation, what is unknown and why. */
void table_note(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same of what changes how the numbers are to be read: text and HTML say it first. */
void table_warn(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Before all other notes: why the table is not what was asked for. */
void table_warn_first(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What --time-unit and --max-width ask for: shown_in of all durations; max_width of a column (id) or of all text columns (n alone),
 * "name:55,input_shape:80". ERR_USAGE for other text. */
int table_show_in(struct table *t, const char *unit, struct err *e);
int table_max_width(struct table *t, struct str widths, struct err *e);

/* Reading. */
/* Whether a column is of strings, which table_filter searches. */
bool table_has_text(const struct table *t);
int table_find_column(const struct table *t, struct str id);                /* by id, else by what it is also called; -1 = none */
/* The column whose cells text and HTML show in column `col`: itself, or, as t->names says, the one with its short or its full names. */
unsigned table_shown_column(const struct table *t, unsigned col);
bool table_is_null(const struct table *t, size_t row, unsigned col);
int64_t table_i64(const struct table *t, size_t row, unsigned col);         /* also of CELL_BOOL */
double table_f64(const struct table *t, size_t row, unsigned col);          /* converts CELL_I64 */
struct str table_str(const struct table *t, size_t row, unsigned col);

/* What the common options do; each keeps equal rows in order. Unknown columns: ERR_USAGE with the list of ids. */
int table_sort(struct table *t, struct str column, bool descending, struct err *e) __attribute__((warn_unused_result)); /* nulls last */
void table_filter(struct table *t, struct str text);                         /* rows with text in any string cell; all where no column is of strings */
void table_limit(struct table *t, size_t n);                                 /* 0 = all; nothing where t->whole */
void table_keep(struct table *t, const uint8_t *keep);                       /* rows i with keep[i]; n_rows of them */
/* Keeps these columns, in this order. A tree stays indented: with the text column that a COLUMN_TREE indents, that one is kept
 * in front of it, marked COLUMN_INDENT unless it is in the list itself; so stays, behind them, the column with the short or full names of one. */
int table_select(struct table *t, struct str comma_separated_ids, struct err *e);

#endif
