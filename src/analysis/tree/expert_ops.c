#include "analysis/tree/expert_ops.h"

#include "analysis/analysis.h"
#include "op/expr.h"
#include "op/op_args.h"

/* Whether a view is of a weight: three dimensions, elements of 8 bits or fewer. Activations have more bits. */
static bool expert_ops_is_weight(const struct profile *p, uint32_t span)
{
	struct op_args a = {0};
	char why[EXPR_WHY];
	const uint32_t set = p->span.args[span];
	const struct op_facts f = {.dims = profile_str(p, profile_arg_id(p, set, ARG_INPUT_DIMS)), .types = profile_str(p, profile_arg_id(p, set, ARG_INPUT_TYPES))};
	const struct op_tensor *t = op_args_parse(&a, &f, why) == 0 ? op_arg_tensor(&a, 0) : NULL;
	const int bits = t ? dtype_bits(op_arg(&a, 0)->dtype) : 0;
	const bool weight = t && t->rank == 3 && bits > 0 && bits <= 8 && op_arg(&a, 0)->dtype != DTYPE_BOOL;
	op_args_release(&a);
	return weight;
}

struct expert_ops expert_ops_in(const struct profile *p, uint32_t op)
{
	struct expert_ops x = {ROW_NONE, ROW_NONE, ROW_NONE};
	const int64_t end_ns = span_end(p, op);
	unsigned weights = 0;
	for (uint32_t i = op + 1; i < p->span.rows.n && p->span.track[i] == p->span.track[op] && p->span.start_ns[i] < end_ns; i++) {
		if (p->span.kind[i] != SPAN_OP)
			continue;
		if (p->span.name[i] == p->span.name[op])
			return (struct expert_ops){ROW_NONE, ROW_NONE, ROW_NONE};
		const struct str name = profile_str(p, p->span.name[i]);
		if (str_eqc(name, "TopK")) {
			x.routing = i;
		} else if (str_eqc(name, "aten::view") && expert_ops_is_weight(p, i)) {
			weights++;
			x.up = weights == 1 ? i : x.up;
			x.down = weights == 2 ? i : x.down;
		}
	}
	if (weights != 2)
		x.up = x.down = ROW_NONE;
	return x;
}
