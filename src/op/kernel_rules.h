/* Rows of kernels.def, and those of a user. Private to src/op. */
#ifndef OPSCOPE_OP_KERNEL_RULES_H
#define OPSCOPE_OP_KERNEL_RULES_H

#include "op/kernels.h"

/* How a row answers the Tensor Core question. */
enum tc_rule { TC_NO, TC_YES, TC_UNKNOWN, TC_UNKNOWN_BY_MMA, TC_UNKNOWN_BY_DOT };

struct kernel_row {
	const char *pattern;
	enum kernel_class class;
	enum tc_rule rule;
};

#endif
