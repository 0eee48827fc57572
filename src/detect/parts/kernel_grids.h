/* How a kernel's blocks lie on the GPU, for detectors. */
#ifndef OPSCOPE_DETECT_PARTS_KERNEL_GRIDS_H
#define OPSCOPE_DETECT_PARTS_KERNEL_GRIDS_H

#include "detect/parts/shared.h"

/* A shorter kernel lasts as long as it takes to start and end, however its blocks lie. */
enum { KERNEL_SHORTEST_NS = 5000 };

/* SMs of the device of this row of p->launch; 0 = not stated. */
int launch_sms(const struct profile *p, uint32_t launch);
/* Blocks of the grid; 0 = not stated. */
double launch_blocks(const struct profile *p, uint32_t launch);

/* Kernels (by string id) that wait by design, for others or for a time. */
bool kernel_waits(const struct profile *p, uint32_t name);

/* Whether a kernel runs beside another one of its GPU, whose blocks may fill what it leaves: one byte a row of gpu_op; mem_free it. O(n log n).
 * Detectors ask shared_beside. */
uint8_t *kernels_beside(const struct profile *p);

/* Whether this work (row of gpu_op) multiplies matrices, convolves or attends, by its kernel's name or, where that tells nothing, by its op's model. */
bool kernel_multiplies(const struct profile *p, struct findings *f, uint32_t gpu);

#endif
