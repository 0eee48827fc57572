#include "analysis/costs/tc_used.h"

#include "analysis/analysis.h"
#include "analysis/costs/costs.h"
#include "base/mem.h"

/* The widest floating type in a list as Kineto writes it: "['c10::BFloat16', 'float', 'Scalar']". An answer of name_memo. */
static uint8_t widest_float(struct str types)
{
	enum dtype widest = DTYPE_UNKNOWN;
	for (size_t i = 0, n; i < types.n; i += n + 1) {
		for (n = 0; i + n < types.n && !strchr("[]'\", ;", types.p[i + n]);)
			n++;
		enum dtype t = dtype_find((struct str){types.p + i, n});
		if (dtype_kind(t) == DTYPE_KIND_FLOAT && dtype_bits(t) > dtype_bits(widest))
			widest = t;
	}
	return (uint8_t)widest;
}

/* Ops around a launch that are asked for types, at most: hostile input may nest without end. */
enum { TC_USED_LOOK_UP = 16 };

/* While kernels are asked; the models are made when the first kernel needs them. */
struct tc_used_types {
	const struct profile *p;
	struct costs *models;
	struct name_memo widest;
};

static enum dtype operands_of(struct tc_used_types *x, uint32_t op)
{
	for (int i = 0; i < TC_USED_LOOK_UP && op != ROW_NONE; i++, op = x->p->span.op[op]) {
		const struct cost *c = costs_of_span(x->models, x->p, op, COST_FORWARD);
		if (c->dtype != DTYPE_UNKNOWN)
			return c->dtype;
		uint32_t types = profile_arg_id(x->p, x->p->span.args[op], ARG_INPUT_TYPES);
		if (types && name_memo_of(&x->widest, types))
			return (enum dtype)name_memo_of(&x->widest, types);
	}
	return DTYPE_UNKNOWN;
}

int pass_tensor_cores(struct profile *p, struct err *e)
{
	const struct gpu_ops *g = &p->gpu_op;
	struct tc_used_types x = {.p = p};
	(void)e;
	p->tensor_cores = ARENA_ARRAY(&p->arena, g->rows.n, uint8_t);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] != GPU_KERNEL)
			continue;
		const struct kernel_info *k = gpu_kernel(p, i);
		p->tensor_cores[i] = (uint8_t)k->tensor_core;
		if (!k->dot || k->tensor_core != TRI_UNKNOWN || g->op[i] == ROW_NONE)
			continue;
		if (!x.models) {
			x.models = costs_models(p, &cost_own);
			x.widest = name_memo_new(p, widest_float);
		}
		p->tensor_cores[i] = (uint8_t)kernel_tensor_core(*k, operands_of(&x, g->op[i]));
	}
	if (x.models) {
		name_memo_release(&x.widest);
		costs_free(x.models);
	}
	return 0;
}
