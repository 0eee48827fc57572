/* Forward, backward or optimizer: the direction of ops and device work. Built on demand and freed by its user; needs PASS_NEST
 * and PASS_CORRELATE. O(n log n).
 *
 *   optimizer  inside a range Optimizer.step* or Optimizer.zero_grad*, torch.optim's step as PyProf marks it, a GradScaler's unscaling,
 *              or a fused optimizer's op; backward within it (a closure that runs the model again) is backward all the same
 *   backward   linked to a forward op (fwdbwd.h), with a forward thread id, or named as a node of autograd, its engine's range, an
 *              operator that only backward needs ("aten::threshold_backward"; what DistributedDataParallel does with gradients), or AccumulateGrad; and all inside (recomputation too)
 *   forward    inside any other op
 *   other      inside no op and no such range
 * Device work has the direction of the op that launched it, else of what is around its API call. */
#ifndef OPSCOPE_ANALYSIS_TREE_DIRECTION_H
#define OPSCOPE_ANALYSIS_TREE_DIRECTION_H

#include "store/profile.h"

enum direction { DIR_FORWARD, DIR_BACKWARD, DIR_OPTIMIZER, DIR_OTHER /* outside all ops */, DIRECTIONS };
extern const char *const direction_name[DIRECTIONS]; /* "forward", ... */

struct directions {
	uint8_t *gpu;        /* gpu_op row -> enum direction */
	uint32_t *forward;   /* gpu_op row -> the forward op (row in span) whose backward launched it; ROW_NONE for all others and
	                      * where no number or arrow leads to it */
	uint8_t *span;       /* the same per span: of API calls too */
	uint32_t *span_forward;
	uint32_t *accumulates; /* span -> for all in AccumulateGrad, the forward op of the backward op that ran before it on its thread, whose
	                      * gradient it adds; ROW_NONE for all others */
	struct fwdbwd *links;
	bool is_kept;        /* store/reuse.h */
};

struct directions *directions_new(const struct profile *p);
void directions_free(struct directions *d);

#endif
