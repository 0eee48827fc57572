/* The table of ops, shared by `operators` and `lines`. */
#ifndef OPSCOPE_REPORT_PARTS_OPERATORS_H
#define OPSCOPE_REPORT_PARTS_OPERATORS_H

#include "query/report.h"

/* By shapes and stack together: no grouping of the report's own. */
enum operators_by { OPERATORS_BY_NAME, OPERATORS_BY_SHAPE, OPERATORS_BY_STACK, OPERATORS_BY_LINE, OPERATORS_BY_SHAPES_AND_STACK };

/* The columns of the table; `lines` has those of --group-by=line. */
extern const struct section operators_section;

/* run() of these reports; args->variant->by is an enum operators_by. */
report_run_fn operators_run;

#endif
