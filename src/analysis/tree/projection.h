/* Ranges projected onto the devices, as `nsys stats --report nvtx_gpu_proj_sum` does: the device work whose API call began inside
 * the range, on its thread; of a start/end range (SPAN_RANGE), which belongs to no one thread, in its process. The projection is
 * from the first start to the last end of that work. Building is O(n log n), a question O(log n + 2 x 32) whatever the nesting.
 * Needs PASS_CORRELATE. */
#ifndef OPSCOPE_ANALYSIS_TREE_PROJECTION_H
#define OPSCOPE_ANALYSIS_TREE_PROJECTION_H

#include "analysis/analysis.h"

struct projected {
	uint64_t ops, kernels;             /* launched inside; ops: also copies, sets and whole graphs */
	int64_t device_ns, kernel_ns;      /* sums of their durations */
	int64_t start_ns, end_ns;          /* of all that work; only if ops */
	int64_t kernel_start_ns, kernel_end_ns; /* of kernels alone; only if kernels */
};

struct projection;

struct projection *projection_new(const struct profile *p);
void projection_free(struct projection *x);
/* Sooner when ranges are asked for in the order of the profile. */
struct projected projection_of(struct projection *x, uint32_t span);

#endif
