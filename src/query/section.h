/* The tables of a report, declared: each section lists all columns that it can have, and what each takes to be there. Help, the
 * docs and --columns read the lists; run() starts a section and puts values by column number.
 *
 *   enum { WAITS_NAME, WAITS_DEVICE, WAITS_STATS };
 *   static const struct section waits_section = {COLUMNS(
 *           [WAITS_NAME] = {COLUMN(TEXT, "name", "Wait", "what was waited for", .flags = COLUMN_ANSWER)},
 *           [WAITS_DEVICE] = {COLUMN(TEXT, "device", ...), .by = BY(WAITS_BY_STREAM)},
 *           STATS_COLUMN_LIST(WAITS_STATS),
 *   )};
 *
 *   section_start(&waits_section, args, 0, out);
 *   table_row(out);
 *   table_set_str(out, WAITS_NAME, name);
 *
 * A value of a column that is not there is dropped. */
#ifndef OPSCOPE_QUERY_SECTION_H
#define OPSCOPE_QUERY_SECTION_H

#include "base/buf.h"
#include "base/table.h"

struct report;
struct report_args;

/* What the input must have for a column to be shown, besides a grouping: X(id, its words in help and docs). */
#define SECTION_WHENS(X)                                                                                           \
	X(DEVICE, "device work") X(NO_DEVICE, "no device work") X(SHAPES, "recorded shapes") X(STACKS, "recorded stacks")            \
	X(MEMORY, "recorded memory") X(SEVERAL_GPUS, "several GPUs") X(NO_TOTALS, "no recorded totals")                 \
	X(COLLECTIVES, "collectives") X(OUTSIDE, "work outside the steps") X(SEVERAL_INPUTS, "several inputs") X(RECORDED, "where recorded") X(SOURCES, "the compiler's provenance") X(COUNTERS, "hardware counters") X(SAMPLES, "sampled GPU metrics")

enum section_when_bit {
#define SECTION_WHEN_BIT_(id, words) WHEN_BIT_##id,
	SECTION_WHENS(SECTION_WHEN_BIT_)
	SECTION_N_WHENS
};
enum section_when {
#define SECTION_WHEN_(id, words) WHEN_##id = 1 << WHEN_BIT_##id,
	SECTION_WHENS(SECTION_WHEN_)
};

/* A column: what it holds (COLUMN_OF_...), id, title and help; behind them what else struct column has, as .flags = COLUMN_ANSWER. */
#define COLUMN(holds, id_, title_, help_, ...) .column = {.id = id_, .title = title_, .help = help_, COLUMN_OF_##holds, __VA_ARGS__}
#define COLUMN_OF_TEXT .type = CELL_STR
#define COLUMN_OF_YES_NO .type = CELL_BOOL
#define COLUMN_OF_NUMBER .type = CELL_I64
#define COLUMN_OF_COUNT .type = CELL_I64, .unit = UNIT_COUNT
#define COLUMN_OF_NS .type = CELL_I64, .unit = UNIT_NS
#define COLUMN_OF_TIME .type = CELL_I64, .unit = UNIT_TIME_NS
#define COLUMN_OF_BYTES .type = CELL_I64, .unit = UNIT_BYTES
#define COLUMN_OF_FLOPS .type = CELL_I64, .unit = UNIT_FLOPS
#define COLUMN_OF_REAL .type = CELL_F64
#define COLUMN_OF_PERCENT .type = CELL_F64, .unit = UNIT_PERCENT
#define COLUMN_OF_MEAN_NS .type = CELL_F64, .unit = UNIT_NS
#define COLUMN_OF_MEAN_BYTES .type = CELL_F64, .unit = UNIT_BYTES
/* .by of a column that the grouping with this number (report_variant.by) has; BY(a) | BY(b) of two. */
#define BY(number) (1u << (number))

/* All columns of a section, as initialisers of an array by column number. */
#define COLUMNS(...)                                                                                    \
	.columns = (const struct section_column[]){__VA_ARGS__},                                        \
	.n = sizeof((const struct section_column[]){__VA_ARGS__}) / sizeof(struct section_column)

struct section_column {
	struct column column;
	unsigned by;      /* groupings that have it; 0 = all */
	unsigned not_by;  /* groupings that do not */
	const char *part; /* the part of a key (report_groups_by) that has it; NULL = any key */
	unsigned when;    /* enum section_when bits, all of which it takes; 0 = always */
};

struct section {
	const char *name, *title; /* of the section; NULL = the report's main table, which has the report's */
	const struct section_column *columns;
	unsigned n;
	unsigned by;              /* groupings whose table this is, where they differ too much for one list; 0 = all */
};

/* What help and docs say of a column. Two sections of one name may declare the same column (struct section.by): help shows the first. */
struct section_entry {
	const char *section;      /* NULL = the main table */
	struct section_column c;
	unsigned by;              /* of the list */
};

/* Adds the columns of *s to *t, which must have none. Column i of *t is s->columns[i]. A column is marked as left out (table_leave_out) when another
 * grouping than that of args->variant has it, or when it needs a bit of `when` that is not in `have`. report_fill drops marked columns after run(). */
void section_start(const struct section *s, const struct report_args *args, unsigned have, struct table *t);

/* Appends a new section to *t, starts it (section_start) and returns it. *t owns it. */
struct table *section_add(const struct section *s, const struct report_args *args, unsigned have, struct table *t);

/* Leaves out a column because the data do not have it. The column must have a `when`, so that help says that it may be missing. */
void section_leave_out(const struct section *s, unsigned column, struct table *t);

/* What report_run adds behind run() to a table with names of kernels in full (COLUMN_KERNEL): the column of their short names. */
struct column section_short_name(const struct column *of);

/* All columns of the report, by section, with what report_run adds, short names and the section "outside" (query/outside.h): NEW_ARRAY, for the
 * caller to mem_free. *n of them. */
struct section_entry *section_entries(const struct report *r, unsigned *n);

/* Appends what the column takes, as help says it: "--group-by=name, op; device work"; nothing for a column that is always there. */
void section_put_when(const struct report *r, const struct section_entry *c, struct buf *out);

/* The column of the report's section (name NULL: the main table) with this id; false = there is none. *out is overwritten in either case. */
bool section_find(const struct report *r, const char *name, struct str id, struct section_entry *out);

/* The columns of the main table whose sums the section "outside" has (outside.def), separated by blanks; NULL = the report has no such section. */
const char *section_outside_ids(const struct report *r);

#endif
