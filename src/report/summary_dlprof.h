/* DLProf's summary: its sections, rows, numbers. */
#ifndef OPSCOPE_REPORT_SUMMARY_DLPROF_H
#define OPSCOPE_REPORT_SUMMARY_DLPROF_H

#include "report/report.h"

/* Fills an empty table, "System Config" (name, value), and gives it the sections summary_report and iterations (one row each), all_ops and
 * all_kernels. ERR_DATA when args->has_steps and there is no such iteration. */
int summary_dlprof(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
