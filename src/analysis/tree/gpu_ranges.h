/* Annotations as Kineto projects them onto the streams (gpu_user_annotation: from the first start to the last end of the stream's work that was launched inside),
 * and which work lies in which. Work counts where it starts. Ranges of a stream nest; of two that
 * overlap otherwise, the work in both is that of the later one alone. */
#ifndef OPSCOPE_ANALYSIS_TREE_GPU_RANGES_H
#define OPSCOPE_ANALYSIS_TREE_GPU_RANGES_H

#include "store/profile.h"

struct gpu_ranges {
	uint32_t *of_gpu;  /* row of gpu_op -> row of span: the innermost range of its stream in which it starts; ROW_NONE */
	uint32_t *around;  /* row of span -> of such a range the innermost one around it; ROW_NONE */
	uint32_t n;        /* how many such ranges the recording has; 0: both arrays are NULL */
};

/* O(n). *out is for gpu_ranges_release to free. */
void gpu_ranges_find(const struct profile *p, struct gpu_ranges *out);
void gpu_ranges_release(struct gpu_ranges *r);

#endif
