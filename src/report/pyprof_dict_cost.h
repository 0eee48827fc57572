/* FLOPs and bytes of a kernel of a PyProf .dict: there the ops are no ranges of the profile, only markers at the kernels. */
#ifndef OPSCOPE_REPORT_PYPROF_DICT_COST_H
#define OPSCOPE_REPORT_PYPROF_DICT_COST_H

#include "op/cost.h"
#include "report/pyprof_row.h"

struct pyprof_dict_cost {
	int64_t flops, bytes; /* what this kernel carries; COST_UNKNOWN */
};

struct pyprof_dict_costs;
struct pyprof_dict_costs *pyprof_dict_costs_new(void);
void pyprof_dict_costs_free(struct pyprof_dict_costs *c);

/* The model of the innermost op around the row's launch that has one, NULL = none. The first of an op's kernels carry its parts, all
 * others 0. */
const struct cost *pyprof_dict_cost_of(struct pyprof_dict_costs *c, struct pyprof_rows *rows, const struct pyprof_row *row,
                                       struct pyprof_dict_cost *out);
/* The marker that the last answer was of; NULL = there was none. */
const struct pyprof_marker *pyprof_dict_cost_marker(const struct pyprof_dict_costs *c);

#endif
