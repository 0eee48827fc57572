/* What the user says that the GPUs are, where an input does not, or says it wrong. */
#ifndef OPSCOPE_GPU_GPU_STATE_H
#define OPSCOPE_GPU_GPU_STATE_H

#include "base/err.h"
#include "gpu/gpus.h"
#include "store/profile.h"

/* The GPU that device row `row` is: by its name, without a name by its size; NULL = not in the list. */
const struct gpu *gpu_of_device(const struct profile *p, uint32_t row);

/* All devices, described or only launched on, are `product` ("H100 80GB HBM3"). Facts that went with another name (SMs, compute capability)
 * are kept where described. Before analysis. ERR_USAGE when the list of GPUs has no such product. */
int gpu_state(struct profile *p, struct str product, struct err *e);

#endif
