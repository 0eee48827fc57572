/* The names of the kernels that each op ran, by whether they use Tensor Cores. Shared by the tables of Tensor Cores. */
#ifndef OPSCOPE_QUERY_OP_KERNELS_H
#define OPSCOPE_QUERY_OP_KERNELS_H

#include "query/op_sums.h"

struct op_kernels {
	const struct profile *p;
	struct op_tc *tc;
	/* By enum tri, then op: string ids of names, each once. */
	struct kernel_set {
		uint32_t *v, n, cap;
	} *set[3];
	uint32_t *last_op;       /* string id -> op + 1 in whose set it was put last */
};

/* *tc must outlive *x. */
void op_kernels_init(struct op_kernels *x, const struct profile *p, struct op_tc *tc);
/* Adds kernel g, which `op` ran. Kernels of one op must come one after the other: see op_instances_by_op. */
void op_kernels_add(struct op_kernels *x, uint32_t op, uint32_t g);
/* The names as name_of(context, string id) gives them: distinct, sorted, joined by ", ", in `a`; *count names. */
struct str op_kernels_text(const struct op_kernels *x, uint32_t op, enum tri uses, struct str (*name_of)(const void *context, uint32_t name),
                           const void *context, struct arena *a, int64_t *count);
void op_kernels_release(struct op_kernels *x);

/* All instances, those of one op one after the other. Free with mem_free. */
uint32_t *op_instances_by_op(const struct ops *o);

#endif
