/* The rate of copies and sets over time, for `memcpy`. */
#ifndef OPSCOPE_REPORT_PARTS_COPY_CHANGES_H
#define OPSCOPE_REPORT_PARTS_COPY_CHANGES_H

#include "query/report.h"

enum memcpy_grouping { MEMCPY_BY_KIND, MEMCPY_BY_DEVICE, MEMCPY_BY_OP, MEMCPY_BY_CHANGE };

extern const struct section copy_changes_section;

/* run() of MEMCPY_BY_CHANGE: a row for each begin and end of copies and sets whose bytes are stated. */
int copy_changes(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
