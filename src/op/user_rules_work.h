/* What user rules are made of. For src/op alone. */
#ifndef OPSCOPE_OP_USER_RULES_WORK_H
#define OPSCOPE_OP_USER_RULES_WORK_H

#include "op/cost_call.h"
#include "op/kernel_rules.h"
#include "op/user_rules.h"

struct user_rules {
	struct arena *arena;
	struct user_costs {
		struct rule *v;
		size_t n;
		struct rule_index index;
	} cost[2];                  /* by enum cost_direction */
	struct kernel_row *kernel;
	size_t n_kernels;
};

/* Room for one more element behind the `n` that are at v: the array or a longer copy of it, twice as long each time. */
void *user_rules_grow(struct arena *a, void *v, size_t n, size_t size);

#endif
