/* The columns that each report can have: over all its groupings, not those of --compat, and over all kinds of input. Written by
 * tools/gen_docs.py, which looks at the reports of the traces in tests/data; a report knows only those of the input at hand. */
#ifndef OPSCOPE_QUERY_COLUMNS_H
#define OPSCOPE_QUERY_COLUMNS_H

#include "base/table.h"

struct report_column {
	const char *report;   /* name of the report */
	const char *section;  /* NULL = its first table */
	const char *when;     /* what it takes for the column to be there; "" = always */
	struct column c;
};

/* Those of one report, all its sections, in their order. */
const struct report_column *report_columns(const char *report, unsigned *n);

/* One of them; NULL = no input has it. */
const struct report_column *report_column_find(const char *report, const char *section, struct str id);

#endif
