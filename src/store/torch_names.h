/* How torch's profiler names what it records. What such a name says of a range is asked of analysis/names/names.h, where there is a string id. */
#ifndef OPSCOPE_STORE_TORCH_NAMES_H
#define OPSCOPE_STORE_TORCH_NAMES_H

#include "base/str.h"

#define TORCH_STEP "ProfilerStep#"                             /* "ProfilerStep#7" */
#define TORCH_ANY_STEP "ProfilerStep*"                         /* in place of all steps, as key_averages() has it */
#define TORCH_MODULE "nn.Module: "                             /* "nn.Module: Linear_3" */
#define TORCH_ENGINE "autograd::engine::evaluate_function: "   /* and the node that the engine runs */
#define TORCH_OPTIMIZER_STEP "Optimizer.step"                  /* "Optimizer.step#SGD.step" */

#endif
