/* Kernels one by one, with the op that each belongs to, for `kernels`. */
#ifndef OPSCOPE_REPORT_KERNEL_CALLS_H
#define OPSCOPE_REPORT_KERNEL_CALLS_H

#include "report/report.h"

/* One row a kernel, in order of start. Needs PASS_OPS and PASS_STEPS. */
int kernel_calls(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

/* DLProf's iteration report: one row a kernel; and its kernel report: one row a short name and op. Needs PASS_OPS. */
int kernels_dlprof_iteration(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);
int kernels_dlprof_kernel(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
