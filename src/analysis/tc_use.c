#include "analysis/tc_use.h"

#include "analysis/op_instances.h"
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

/* What the name of a kernel tells. */
enum { ASKED = 1, COMM = 2, USES = 4, PRODUCT = 8, NAMELESS = 16 };

static uint8_t by_name(struct str name)
{
	struct kernel_info k = kernel_classify(name);
	bool uses = kernel_uses_tc_listed(name) || k.tensor_core == TRI_YES;
	bool product = k.class == KERNEL_GEMM || k.class == KERNEL_CONV || k.class == KERNEL_ATTENTION || k.class == KERNEL_RNN;
	return ASKED | (kernel_is_comm(name) ? COMM : 0) | (uses ? USES : 0) | (product ? PRODUCT : 0) | (k.class == KERNEL_UNKNOWN ? NAMELESS : 0);
}

/* Of kernel g, launched by the op `node`; ROW_NONE = none. */
static bool could_use(const struct profile *p, uint32_t g, uint32_t node, const uint8_t *bottom, const uint8_t *type, uint8_t name)
{
	uint32_t k = p->ops->of_gpu[g];
	bool by_op = node != ROW_NONE && bottom[node];
	bool by_type = (type[k] && name & PRODUCT) || (type[k] == WHOLE && name & NAMELESS);
	bool does = name & USES && (node != ROW_NONE || !p->ops->op[p->ops->instance[k].op].unassociated);
	return !(name & COMM) && (by_op || by_type || does);
}

uint8_t *tc_could_use(const struct profile *p, const struct optree *t)
{
	const struct gpu_ops *gpu = &p->gpu_op;
	uint8_t *could = NEW_ARRAY(gpu->rows.n, uint8_t), *bottom = bottom_eligible(t), *type = types_of_instances(p, t);
	uint8_t *known = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t g = 0; g < gpu->rows.n; g++) {
		uint32_t node = t->gpu_node[g], name = gpu->name[g];
		if (gpu->kind[g] != GPU_KERNEL)
			continue;
		if (!known[name])
			known[name] = by_name(profile_str(p, name));
		could[g] = could_use(p, g, node != ROW_NONE && t->kind[node] == NODE_OP ? node : ROW_NONE, bottom, type, known[name]);
	}
	mem_free(known);
	mem_free(type);
	mem_free(bottom);
	return could;
}
