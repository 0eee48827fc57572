#include "analysis/costs/tc_use.h"

#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/tree/op_instances.h"
#include "base/mem.h"

/* Eligible nodes without an eligible one below them. */
static uint8_t *bottom_eligible(const struct optree *t)
{
	uint8_t *bottom = NEW_ARRAY(t->n, uint8_t), *below = NEW_ARRAY(t->n, uint8_t);
	for (uint32_t n = t->n; n-- > 0;) { /* children stand behind their parents */
		bottom[n] = t->tc_eligible[n] && !below[n];
		if (t->parent[n] != ROW_NONE && (t->tc_eligible[n] || below[n]))
			below[t->parent[n]] = 1;
	}
	mem_free(below);
	return bottom;
}

enum { NOT_TYPED, TYPED, WHOLE };

/* Instance -> TYPED: of an eligible type; WHOLE: and no node of the tree in it is eligible. */
static uint8_t *types_of_instances(const struct profile *p, const struct optree *t)
{
	const struct ops *o = p->ops;
	uint8_t *type = NEW_ARRAY(o->n_instances, uint8_t);
	for (uint32_t k = 0; k < o->n_instances; k++)
		type[k] = o->op[o->instance[k].op].tc_eligible && !o->op[o->instance[k].op].unassociated ? WHOLE : NOT_TYPED;
	for (uint32_t n = 0; n < t->n; n++) {
		uint32_t k = o->of_span[t->span[n]];
		if (k != ROW_NONE && type[k] == WHOLE && t->tc_eligible[n])
			type[k] = TYPED;
	}
	return type;
}

/* A kernel that multiplies, by its name. */
static bool is_product(enum kernel_class k)
{
	return k == KERNEL_GEMM || k == KERNEL_CONV || k == KERNEL_ATTENTION || k == KERNEL_RNN;
}

/* Of kernel g, launched by the op `node`; ROW_NONE = none. */
static bool could_use(const struct profile *p, uint32_t g, uint32_t node, const uint8_t *bottom, const uint8_t *type)
{
	uint32_t k = p->ops->of_gpu[g], name = p->gpu_op.name[g];
	enum kernel_class class = gpu_kernel(p, g)->class;
	bool by_op = node != ROW_NONE && bottom[node];
	bool by_type = (type[k] && is_product(class)) || (type[k] == WHOLE && class == KERNEL_UNKNOWN);
	bool does = gpu_tensor_core_or_listed(p, g) == TRI_YES && (node != ROW_NONE || !p->ops->op[p->ops->instance[k].op].unassociated);
	return !name_is(p, name, NAME_COMM_KERNEL) && (by_op || by_type || does);
}

uint8_t *tc_could_use(const struct profile *p, const struct optree *t)
{
	const struct gpu_ops *gpu = &p->gpu_op;
	uint8_t *could = NEW_ARRAY(gpu->rows.n, uint8_t), *bottom = bottom_eligible(t), *type = types_of_instances(p, t);
	for (uint32_t g = 0; g < gpu->rows.n; g++) {
		uint32_t node = t->gpu_node[g];
		if (gpu->kind[g] != GPU_KERNEL)
			continue;
		could[g] = could_use(p, g, node != ROW_NONE && t->kind[node] == NODE_OP ? node : ROW_NONE, bottom, type);
	}
	mem_free(type);
	mem_free(bottom);
	return could;
}
