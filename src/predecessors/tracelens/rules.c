/* TraceLens' conventions where they differ from opscope's: rules.def beside this file, and what rows cannot say. */
#include "predecessors/tracelens/rules.h"

#include "op/cost_rules.h"
#include "op/moe.h"

#define RULE(class, names, pattern, flops, read, written) RULE_OF_EXPRESSIONS(class, names, pattern, flops, read, written, 1)
static const struct rule tracelens_forward[] = {
#include "predecessors/tracelens/rules.def"
};

static struct rule_set tracelens_rows = {.of = {[COST_FORWARD] = RULE_ROWS(tracelens_forward)}};

/* TraceLens takes the width of the tokens for that of the experts, takes weights as 4 bits, and counts the values between the two products as written and read. */
static void tracelens_experts(struct moe *m)
{
	const int64_t one = cost_mul(m->hidden, m->hidden), between = cost_bytes_of(cost_mul(cost_mul(m->tokens, m->top_k), m->hidden), m->type);
	m->up_rows = cost_mul(m->up_rows / m->inner, m->hidden);
	m->inner = m->hidden;
	m->up_bytes = cost_mul(m->up_rows / m->hidden, one / 2);
	m->down_bytes = one / 2;
	m->input_bytes = cost_add(m->input_bytes, between);
	m->output_bytes = cost_add(m->output_bytes, between);
}

const struct cost_rules tracelens_rules = {
	.rows = &tracelens_rows,
	.bias_is_free = true,
	.both_gradients = true,
	.causal_is_half = true,
	.truth_values = "TraceLens has no size for truth values",
	.experts = tracelens_experts,
};
