/* Kernels one by one, with the op that each belongs to, for `kernels`. */
#ifndef OPSCOPE_REPORT_PARTS_KERNEL_CALLS_H
#define OPSCOPE_REPORT_PARTS_KERNEL_CALLS_H

#include "query/report.h"

extern const struct section kernel_calls_section;

/* One row a kernel, in order of start. Needs PASS_OPS and PASS_STEPS. */
int kernel_calls(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
