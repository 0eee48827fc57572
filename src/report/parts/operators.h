/* The table of ops, shared by `operators` and `lines`. */
#ifndef OPSCOPE_REPORT_PARTS_OPERATORS_H
#define OPSCOPE_REPORT_PARTS_OPERATORS_H

#include "query/report.h"

enum operators_by { OPERATORS_BY_NAME, OPERATORS_BY_SHAPE, OPERATORS_BY_STACK, OPERATORS_BY_LINE };

/* Its columns; those of --group-by=line are those of `lines`. */
extern const struct section operators_section;

/* As run() of a report, by args->variant->by: enum operators_by. */
report_run_fn operators_run;

#endif
