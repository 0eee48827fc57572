/* The findings (detect/detect.h) as a table, of the steps and by the key op that are asked for. */
#ifndef OPSCOPE_QUERY_ADVICE_H
#define OPSCOPE_QUERY_ADVICE_H

#include "detect/detect.h"
#include "query/report.h"

/* Key op, steps, aggregation, compat and brief of *asked count; with the compat of a predecessor that counts iterations of its own, steps are these. Initialises *out; on error it is
 * empty and need not be released. ERR_USAGE for a key op, steps, an aggregation or a predecessor that are not there. */
int advice_table(struct profile *p, const struct report_args *asked, struct table *out, struct err *e);

/* The same as findings. The caller releases *out (findings_release), which is {0} before; on error there is nothing to release. */
int advice_findings(struct profile *p, const struct report_args *asked, struct findings *out, struct err *e);

#endif
