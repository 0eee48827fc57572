/* The rate of copies and sets over time, for `memcpy`. */
#ifndef OPSCOPE_REPORT_PARTS_COPY_RATES_H
#define OPSCOPE_REPORT_PARTS_COPY_RATES_H

#include "query/report.h"

enum memcpy_grouping { MEMCPY_BY_KIND, MEMCPY_BY_DEVICE, MEMCPY_BY_OP, MEMCPY_BY_CHANGE };

extern const struct section copy_rates_section;

/* "HtoD" of the name of a copy in any input's spelling; "" = not told. */
const char *copy_direction(struct str name);

/* run() of MEMCPY_BY_CHANGE: a row for each begin and end of copies and sets whose bytes are stated. */
int copy_rates(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
