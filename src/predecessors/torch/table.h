/* What --compat=torch-* prints of key_averages() and total_average(): columns under the names that torch's own objects have
 * (torch/autograd/profiler_util.py, FunctionEventAvg), times in microseconds as it holds them, layout "torch" or "repr". */
#ifndef OPSCOPE_PREDECESSORS_TORCH_TABLE_H
#define OPSCOPE_PREDECESSORS_TORCH_TABLE_H

#include "query/report.h"
#include "report/parts/key_groups.h"

/* What torch can group by: ERR_USAGE for the rest of args->group_by. */
int torch_table_check(const struct torch_rules *rules, const struct report_args *args, struct err *e);

/* A row for each group, in order of first appearance. Columns that torch would not print are COLUMN_DETAIL: they can be sorted by. */
void torch_table_averages(const struct key_groups *g, const struct report_args *args, struct table *out);

/* One row. */
void torch_table_total(const struct key_groups *g, struct table *out);

#endif
