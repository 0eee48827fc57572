/* A column of a table: what it is called, what its cells are, and how text and HTML show it. */
#ifndef OPSCOPE_BASE_COLUMN_H
#define OPSCOPE_BASE_COLUMN_H

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
	COLUMN_ANSWER = 64, /* answers the report's question: where text has no room for all columns, it leaves these out last */
	COLUMN_MINOR = 128, /* decoration: where text has no room for all columns, it leaves these out first */
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

/* "string", "integer", "number", "boolean"; "", "count", "ns", "time_ns", "us", "bytes", "percent", "ratio", "flops":
 * what JSON, .opscope files and the C API say. */
const char *table_type_name(enum cell_type t);
const char *table_unit_name(enum unit u);

#endif
