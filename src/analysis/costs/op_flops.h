/* FLOPs by op, whether it ran on a GPU or on the CPU: which ops of a nest count, so that each operation counts once. Built on demand and
 * freed by its user; needs PASS_NEST and PASS_CORRELATE. O(n).
 *
 * Default: op/cost.h's models. The innermost op with known FLOPs counts, as analysis/costs/costs.h has it for kernels: a product, convolution,
 * attention or recurrent layer gives way only to another of these inside it, what is inside an op and moves, fills or draws data to none.
 * A backward node without such an op inside counts as the backward of its forward op.
 * OP_FLOPS_TORCH: torch.utils.flop_counter (FlopCounterMode) sees the outermost op that it has a formula for, and no other:
 * mm, addmm, bmm, baddbmm, convolution, attention, their backward. Its formulas are op/cost.h's, except that the weight gradient of a
 * convolution in g groups is g times too large, and a complex multiply-add 2. */
#ifndef OPSCOPE_ANALYSIS_COSTS_OP_FLOPS_H
#define OPSCOPE_ANALYSIS_COSTS_OP_FLOPS_H

#include "analysis/costs/costs.h"
#include "analysis/tree/fwdbwd.h"

enum op_flops_rules { OP_FLOPS_DEFAULT, OP_FLOPS_TORCH };

struct op_flops {
	/* One per span. */
	int64_t *flops;     /* that count at this op; 0 = none, or they count elsewhere */
	uint8_t *unknown;   /* 1: an op whose FLOPs are not known, with no known ones around or inside it. Torch: an op that it counts, but whose
	                     * arguments were not recorded */
};

struct op_flops *op_flops_new(const struct profile *p, struct costs *c, const struct fwdbwd *links, enum op_flops_rules rules);
void op_flops_free(struct op_flops *f);

/* The ops that torch's counter counts, as it names them ("aten.mm"); the place of an op's name in it, -1 = it is none of them. */
enum { OP_FLOPS_TORCH_OPS = 18 };
extern const char *const op_flops_torch_ops[OP_FLOPS_TORCH_OPS];
int op_flops_torch_op(struct str name);

#endif
