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
#include "base/err.h"

enum cell_type { CELL_STR, CELL_I64, CELL_F64, CELL_BOOL };

enum unit {
	UNIT_NONE,    /* text, plain numbers, ids */
	UNIT_COUNT,   /* how many; shown with thousands separators */
	UNIT_NS,      /* a duration, int64 nanoseconds; shown as us, ms or s */
	UNIT_TIME_NS, /* a point in time, int64 nanoseconds on the trace's clock */
	UNIT_US,      /* microseconds as a predecessor printed them (compat tables only) */
	UNIT_BYTES,   /* int64 bytes; shown as KiB, MiB, GiB */
	UNIT_PERCENT, /* 0..100 */
	UNIT_RATIO,   /* 0..1 */
	UNIT_FLOPS,   /* a number of floating-point operations */
};

enum column_flag {
	COLUMN_TREE = 1,   /* CELL_I64 depth, 0 = root, of the row in a tree listed in pre-order: the next CELL_STR
	                    * column is shown indented by it, and the column itself is not shown as text */
	COLUMN_WIDE = 2,   /* long text (call stacks, shapes, argument lists): cut first when the terminal is narrow */
	COLUMN_PROSE = 8,  /* sentences, to be read whole: text shows a table that has such columns as one record a row */
	COLUMN_INDENT = 16, /* set by table_select on a COLUMN_TREE that was not asked for: it only indents text and HTML; CSV and
	                    * JSON leave it out */
	COLUMN_STACK = 32, /* call stacks, frames separated by ';', innermost first: text shortens the paths of files, and of one
	                    * that is cut the place of the first frame stays */
	COLUMN_KEY = 64,   /* answers the report's question: as text it stays while columns without it are left out for want of room */
	COLUMN_MINOR = 128, /* decoration: left out as text before the columns that are neither this nor COLUMN_KEY */
	COLUMN_PATH = 256, /* text whose end tells most, as paths: cut at its start */
	COLUMN_ASKED = 512, /* set where --columns, --sort or the report's own order names it: text never leaves it out */
	COLUMN_KERNEL = 2048, /* names of kernels in full: report_run adds a column with their short names */
	COLUMN_LEVEL = 4096, /* "high", "medium", "low", "info": coloured where text may be */
	COLUMN_TITLED = 8192, /* text that does not speak for itself: in the head of a record its title stands before it */
	COLUMN_GROUP = 1024, /* part of the key by which the rows are grouped: as text it stays, cut down if need be, unless it says nothing */
	COLUMN_DETAIL = 4, /* left out of text output unless asked for with --columns; always in CSV, JSON and HTML */
};

struct column {
	const char *id;    /* snake_case, with the unit in the name: "total_gpu_ns" */
	const char *title; /* "Total GPU" */
	const char *help;  /* one sentence: what it is and how it is computed */
	enum cell_type type;
	enum unit unit;
	unsigned flags;
	int digits;        /* decimals in text and compat CSV; 0 = choose by unit (UNIT_PERCENT: 2) */
	const char *shown_in; /* UNIT_NS and UNIT_US as text and HTML: "ns", "us", "ms" or "s"; NULL = what suits each cell */
	unsigned max_width; /* text: at most so many characters (a title's words are not cut); 0 = what there is room for */
	const char *also;  /* other ids by which it is found, separated by blanks: names that users of a predecessor know; NULL = none */
	const char *short_of; /* id of the column of full names of which this has the short ones; NULL = none */
};

union cell {
	int64_t i;
	double f;
	struct str s;
};

struct column_data {
	struct column col;
	union cell *cell;
	uint8_t *set;      /* 1 = has a value, 0 = null */
};

/* "string", "integer", "number", "boolean"; "", "count", "ns", "time_ns", "us", "bytes", "percent", "ratio", "flops":
 * what JSON, .opscope files and the C API say. */
const char *table_type_name(enum cell_type t);
const char *table_unit_name(enum unit u);

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

/* Appends a section: a new, initialised table that *t owns. */
struct table *table_section(struct table *t, const char *name, const char *title);

/* Adds a column and returns its index; it is null in the rows that there are. The strings in *c must outlive the table. */
unsigned table_column(struct table *t, const struct column *c);
#define TABLE_COLUMN(t, ...) table_column((t), &(struct column){__VA_ARGS__})
/* Adds all of a fixed list; the first gets index 0. */
void table_columns(struct table *t, const struct column *list, unsigned n);

/* Starts a row and returns its number; cells are then set on it with table_set_* (on the last row). */
size_t table_row(struct table *t);
void table_set_i64(struct table *t, unsigned col, int64_t v);
void table_set_f64(struct table *t, unsigned col, double v); /* NaN and infinities become null */
void table_set_bool(struct table *t, unsigned col, bool v);
void table_set_str(struct table *t, unsigned col, struct str s);      /* borrowed: s must outlive the table */
void table_set_str_copy(struct table *t, unsigned col, struct str s); /* copied into the table's arena */
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
