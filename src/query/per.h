/* Sums of a report told per step or per call (sums.def). */
#ifndef OPSCOPE_QUERY_PER_H
#define OPSCOPE_QUERY_PER_H

#include "query/report.h"

/* The ids of the report's columns that are sums, with blanks between them (sums.def); NULL = it has none. */
const char *report_sums(const struct report *r);

/* Does to *out, the report's own answer, what args->per asks for; of totals the heading says of how many steps they are, where there are several. *p is the whole profile, *args what was asked of it.
 *
 * Per step is total / number of steps: of the steps that args->steps choose, or of all steps, if nothing that the report counts (device work; in reports of
 * the host ops and calls) was recorded outside the steps. REPORT_PER_STEP_IF_RIGHT leaves *out as it is where that does not hold, where there is only one
 * step, and where steps were searched for, not marked: the heading then says of how many steps it is. Columns become CELL_F64. Except with REPORT_PER_STEP_IF_RIGHT, their ids end in "_per_step" or
 * "_per_call", by which scripts tell them from totals; the old ids find them, too. ERR_USAGE for a report without such columns, ERR_DATA where there are no
 * steps or work was recorded outside them. */
int report_per(const struct report *r, struct profile *p, const struct report_args *args, struct table *out, struct err *e);

#endif
