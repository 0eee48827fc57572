/* FLOPs and bytes as TraceLens counts them. */
#ifndef OPSCOPE_PREDECESSORS_TRACELENS_RULES_H
#define OPSCOPE_PREDECESSORS_TRACELENS_RULES_H

#include "op/cost.h"

extern const struct cost_rules tracelens_rules;

#endif
