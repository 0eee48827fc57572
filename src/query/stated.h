/* What an input states as finished results (the store's table `stated`), as tables again. */
#ifndef OPSCOPE_QUERY_STATED_H
#define OPSCOPE_QUERY_STATED_H

#include "query/report.h"

/* Appends each of them to *out as a section of that name, with a first column `aggregation`; a column is of numbers if all its values are.
 * A table or column beyond what any tool writes is left out with a note. */
void stated_tables(const struct profile *p, struct table *out);

/* The section of that name; NULL. */
const struct table *stated_find(const struct table *t, const char *name);
/* The first row of an aggregation in it, at or behind `from`; SIZE_MAX = none. */
size_t stated_row(const struct table *t, int64_t aggregation, size_t from);

#endif
