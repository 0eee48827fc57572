/* By whose conventions an op is counted: rows that go before those of rules.def, and what a row cannot say. opscope's own have neither; a wing may have
 * conventions of its predecessor (src/predecessors). */
#ifndef OPSCOPE_OP_COST_RULES_H
#define OPSCOPE_OP_COST_RULES_H

#include "op/cost_call.h"

struct moe;

/* What is kept of a profile by these rules (store/reuse.h), each under the address of its byte. */
enum cost_kept { COST_KEPT_KNOWN, COST_KEPT_ALL, COST_KEPT };

struct cost_rules {
	struct rule_set *rows;           /* NULL = none */
	bool bias_is_free;               /* the bytes of a convolution are without its bias */
	bool both_gradients;             /* the backward of a convolution makes both gradients, whatever was recorded */
	bool causal_is_half;             /* causal attention has half of the FLOPs of all pairs, unknown ones where the mask was not recorded */
	const char *truth_values;        /* why the bytes of truth values are unknown; NULL = they are known */
	void (*experts)(struct moe *m);  /* changes the sizes that ops inside a mixture of experts state (op/moe.h); NULL = takes them */
	char kept[COST_KEPT];
};

#endif
