/* What a user wants done to the tables of a report before they are shown: sorted, filtered, only some columns. */
#ifndef OPSCOPE_QUERY_ARRANGE_H
#define OPSCOPE_QUERY_ARRANGE_H

#include "base/table.h"

struct report;

/* {0} = nothing. NULL = not asked for. Strings are borrowed and must outlive the table. */
struct arrangement {
	const char *sort;      /* a column of the chosen table; '+' in front: ascending, '-': descending, else text from A and numbers from the largest */
	const char *filter;    /* of all tables: rows with this text */
	const char *columns;   /* of the chosen table: "a,b" */
	const char *title;     /* of the chosen table, in place of its own */
	const char *time_unit; /* of all tables: table_show_in */
	const char *max_width; /* of the chosen table: table_max_width */
	const struct report *report; /* `columns` may name what it has for other inputs alone; NULL = none */
};

/* `chosen` is *first or one of its sections. ERR_USAGE for a column or a value that is not there. */
int arrange_tables(struct table *first, struct table *chosen, const struct arrangement *a, struct err *e);

#endif
