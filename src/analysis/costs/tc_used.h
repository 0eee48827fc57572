/* Whether kernels used Tensor Cores: the one answer for all reports and findings. */
#ifndef OPSCOPE_ANALYSIS_COSTS_TC_USED_H
#define OPSCOPE_ANALYSIS_COSTS_TC_USED_H

#include "analysis/names/names.h"

/* Of a kernel (row of gpu_op): by its name (op/kernels.h); of a compiler's dot product whose name states no type, by the innermost op around its launch
 * whose types are known: those of its model's operands, without a model the widest floating type among its arguments. Of a copy or set TRI_NO. Needs
 * PASS_CORRELATE, with which the pass (PASS_TENSOR_CORES) always runs. */
static inline enum tri gpu_tensor_core(const struct profile *p, uint32_t g) { return (enum tri)p->tensor_cores[g]; }

/* The same, but what older tools listed uses them. */
static inline enum tri gpu_tensor_core_or_listed(const struct profile *p, uint32_t g)
{
	return name_is(p, p->gpu_op.name[g], NAME_TC_LISTED) ? TRI_YES : gpu_tensor_core(p, g);
}

#endif
