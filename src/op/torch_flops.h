/* FLOPs as torch.profiler(with_flops=True) counts them (torch/csrc/profiler/util.cpp), in checked int64:
 *
 *   aten::conv2d           2 N Cout Hout Wout Cin kh kw / groups, Hout = (H + 2 pad - dil (kh - 1) - 1) / stride + 1; needs 7 arguments, a
 *                          4-D input and weight
 *   aten::mm, addmm        2 (elements of the first matrix / k) (elements of the second), k the first one's last dimension
 *   aten::bmm, baddbmm     the same / the batch, which both have
 *   aten::mul, aten::add   elements of the first input
 *   all others             0
 * alpha, beta and biases are not counted; the backward of a convolution, attention and their like are 0, not unknown: what is
 * right is op/cost.h. */
#ifndef OPSCOPE_OP_TORCH_FLOPS_H
#define OPSCOPE_OP_TORCH_FLOPS_H

#include "op/cost.h"

/* COST_UNKNOWN for one of those ops when the shapes, or a convolution's parameters, were not recorded, or the result does not fit;
 * 0 where torch warns and counts 0: other arguments than these formulas take. */
int64_t torch_flops(const struct op_facts *f);

/* Whether torch counts this op at all. */
bool torch_flops_counts(struct str op_name);

#endif
