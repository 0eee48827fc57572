#include "analysis/graph/graph_plausible.h"

#include "analysis/names/names.h"
#include "base/mem.h"
#include "op/cost.h"

static enum op_class graph_op_class(struct graph_op_classes *x, const struct profile *p, uint32_t name)
{
	if (x->p != p) {
		mem_free(x->of_name);
		*x = (struct graph_op_classes){p, NEW_ARRAY(p->strings.n, uint8_t)};
	}
	if (!x->of_name[name]) {
		struct arena a = {0};
		struct cost cost = {0};
		cost_of(&(struct op_facts){.name = profile_str(p, name), .in_elements = -1, .out_elements = -1, .group_size = -1}, &cost_own, COST_FORWARD, p->user_rules, &a, &cost);
		x->of_name[name] = (uint8_t)(1 + cost.class);
		arena_release(&a);
	}
	return (enum op_class)(x->of_name[name] - 1);
}

/* Classes of ops that launch no kernels of this class, as bits 1 << enum op_class; 0 = not known. */
static uint32_t graph_never_launch(enum kernel_class kernel)
{
	const uint32_t move = 1u << OP_COPY | 1u << OP_FILL | 1u << OP_EMBEDDING | 1u << OP_RANDOM | 1u << OP_SORT | 1u << OP_POOL | 1u << OP_VIEW;
	switch (kernel) {
	case KERNEL_GEMM:
	case KERNEL_CONV:
	case KERNEL_ATTENTION:
		return move | 1u << OP_NORM | 1u << OP_SOFTMAX | 1u << OP_ELEMENTWISE;
	case KERNEL_NORM:
		return move | 1u << OP_GEMM | 1u << OP_CONV | 1u << OP_ELEMENTWISE;
	default:
		return 0;
	}
}

bool graph_is_plausible(struct graph_op_classes *x, const struct profile *p, const struct graph_sequence *work, const struct graph_capture *c, uint8_t *never)
{
	uint64_t known = 0, odd = 0;
	for (uint32_t i = 0; i < work->n; i++) {
		const uint32_t ops = work->kind[i] == GPU_KERNEL ? graph_never_launch(gpu_kernel(p, work->row[i])->class) : 0, op = graph_op_of(c->p, c->work.row[i]);
		const enum op_class class = ops && op != ROW_NONE ? graph_op_class(x, c->p, c->p->span.name[op]) : OP_UNKNOWN;
		never[i] = ops >> class & 1;
		known += class != OP_UNKNOWN;
		odd += never[i];
	}
	return odd * 100 <= known * GRAPH_MOST_ODD_PCT;
}

void graph_op_classes_release(struct graph_op_classes *x)
{
	mem_free(x->of_name);
}
