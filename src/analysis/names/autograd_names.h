/* What the names of autograd's ranges say. In every input that names them: Kineto traces, emit_nvtx of all versions. */
#ifndef OPSCOPE_ANALYSIS_NAMES_AUTOGRAD_NAMES_H
#define OPSCOPE_ANALYSIS_NAMES_AUTOGRAD_NAMES_H

#include "base/str.h"

enum autograd_name {
	AUTOGRAD_NONE,        /* any other name */
	AUTOGRAD_ENGINE,      /* "autograd::engine::evaluate_function: X": the engine runs node X */
	AUTOGRAD_NODE,        /* a node itself: "MmBackward0", "MmBackward", "CopyBackwards", "CompiledFunctionBackward" */
	AUTOGRAD_ACCUMULATE,  /* AccumulateGrad, alone or run by the engine: adds a gradient to a parameter's; it is no node of an op */
	AUTOGRAD_FORMULA,     /* an operator that only backward needs: "aten::threshold_backward", DistributedDataParallel's work on gradients */
	AUTOGRAD_OPTIMIZER,   /* "Optimizer.step#SGD.step", "Optimizer.zero_grad#...", torch.optim's step as PyProf marks it, "aten::_fused_adam_", a GradScaler's unscaling */
};

enum autograd_name autograd_classify(struct str name);

/* Is `node` ("AddmmBackward0") what an op of this name ("aten::addmm", "addmm") makes? Letters and digits are compared, and either
 * name may go on: "MaxPool2DWithIndicesBackward0" and "aten::max_pool2d_with_indices", "NllLossBackward0" and "nll_loss_forward".
 * False says nothing: autograd.Functions and fused ops are named freely. */
bool autograd_node_fits(struct str node, struct str op);

#endif
