/* Ops inside one that runs a mixture of experts and has not their weights among its arguments (op/cost.h, COST_ASKS_INNER): how many experts a token goes
 * to, and how large their weights are, stands in the arguments of these. */
#ifndef OPSCOPE_ANALYSIS_TREE_EXPERT_OPS_H
#define OPSCOPE_ANALYSIS_TREE_EXPERT_OPS_H

#include "store/profile.h"

/* Rows of span; ROW_NONE = there is none. `up` and `down` are both known, or none is. */
struct expert_ops {
	uint32_t routing;    /* TopK of triton_kernels */
	uint32_t up, down;   /* aten::view of weights [experts][inputs][results] of 8 bits or fewer, in this order; where there are not two of them: none */
};

/* Of one op; none of one with another of its name inside. O(rows inside it), in all ops of a name together O(rows). */
struct expert_ops expert_ops_in(const struct profile *p, uint32_t op);

#endif
