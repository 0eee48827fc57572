/* What keeps a job of several ranks from being faster: for whom ranks wait, what of communication is transfer, and the findings of each rank, joined. */
#ifndef OPSCOPE_QUERY_JOB_ADVICE_H
#define OPSCOPE_QUERY_JOB_ADVICE_H

#include "query/job_report.h"

/* A table as findings_table makes it. A finding that several ranks have stands once, as the rank with the largest gain has it; the evidence names the ranks. Where
 * waiting is told from transfer, findings about the communication of one rank give way to those about the job. Initialises *out; on error there is nothing to
 * release. ERR_DATA when no recording can be read. */
int job_advice_run(const struct job_inputs *in, const struct report_args *asked, struct table *out, struct err *e);

#endif
