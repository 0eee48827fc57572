/* DLProf's reports as tables: each fills an empty table, and fails as report_run_fn does. Steps are its iterations. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_REPORTS_H
#define OPSCOPE_PREDECESSORS_DLPROF_REPORTS_H

#include "query/report.h"

report_run_fn dlprof_summary, dlprof_steps, dlprof_ops, dlprof_op_types, dlprof_groups, dlprof_tensor_cores;
/* Its iteration report, one row a kernel; and its kernel report, one row a short name and op. */
report_run_fn dlprof_kernels_by_instance, dlprof_kernels_by_op;

#endif
