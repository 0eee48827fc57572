/* What DLProf calls ops, and in which order it lists them. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_OP_NAMES_H
#define OPSCOPE_PREDECESSORS_DLPROF_OP_NAMES_H

#include "analysis/tree/op_instances.h"

/* What DLProf calls an op: "Conv2d::_call_impl[2]" for "Conv2d::_call_impl(2)", API calls with their version,
 * "unassociated_cudaDeviceSynchronize_v3020". In `a`. */
struct dlprof_op_names {
	struct str id, name, type;
};
/* Numbers as DLProf prints them, "/a(2)/relu(3)" to "/a[2]/relu[3]". In `a`. */
struct str op_name_brackets(struct str name, struct arena *a);
void dlprof_op_names(const struct ops *o, const struct profile *p, uint32_t op, struct arena *a, struct dlprof_op_names *out);

/* "fprop", "bprop", "": DLProf takes the optimizer for fprop. */
struct str dlprof_direction(const struct op *op);
/* Ops in DLProf's order, by the text of their ids, without those that DLProf does not have; n of them. Free with mem_free; texts are
 * in `a`. */
struct dlprof_op_row {
	struct dlprof_op_names names;
	uint32_t op;
};
struct dlprof_op_row *dlprof_op_order(const struct profile *p, struct arena *a, uint32_t *n);

#endif
