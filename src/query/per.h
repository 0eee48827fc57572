/* Sums of a report told per step or per call (sums.def). */
#ifndef OPSCOPE_QUERY_PER_H
#define OPSCOPE_QUERY_PER_H

#include "query/report.h"

/* Whether it has such sums. */
bool report_has_sums(const struct report *r);

/* Does to *out, the report's own answer, what args->per asks for. *p is the whole profile, *args what was asked of it.
 *
 * Per step is total / number of steps: of those that args->steps choose; without these of all steps, if nothing of what the report counts (device work,
 * in reports of the host ops and calls) was recorded outside them. REPORT_PER_STEP_IF_RIGHT leaves *out as it is where this cannot be said, where there is but one step, and where steps
 * were searched for, not marked. Columns become CELL_F64; but for REPORT_PER_STEP_IF_RIGHT, their ids end in "_per_step" or "_per_call", by which
 * scripts tell them from totals, and are found by the old ones, too. ERR_USAGE for a report without such columns, ERR_DATA where there are no steps or
 * more than them was recorded. */
int report_per(const struct report *r, struct profile *p, const struct report_args *args, struct table *out, struct err *e);

#endif
