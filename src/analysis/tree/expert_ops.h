/* An op that runs a mixture of experts may lack the weights among its arguments (op/cost.h, COST_ASKS_INNER). Then ops inside it state how many experts a token
 * goes to, and how large the weights are. */
#ifndef OPSCOPE_ANALYSIS_TREE_EXPERT_OPS_H
#define OPSCOPE_ANALYSIS_TREE_EXPERT_OPS_H

#include "store/profile.h"

/* Rows of span; ROW_NONE = there is none. `up` and `down` are both known, or none is. */
struct expert_ops {
	uint32_t routing;    /* TopK of triton_kernels */
	uint32_t up, down;   /* the two aten::view of weights [experts][inputs][outputs] of 8 bits or fewer, in order of start; unless there are just two, none */
};

/* The ops inside an op. All are ROW_NONE if an op of the same name lies inside. O(rows inside); for all ops of a name together O(rows). */
struct expert_ops expert_ops_in(const struct profile *p, uint32_t op);

#endif
