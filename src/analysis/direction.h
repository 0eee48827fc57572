/* Forward, backward or optimizer: the direction of ops and device work. Built on demand and freed by its user; needs PASS_NEST
 * and PASS_CORRELATE. O(n log n). */
#ifndef OPSCOPE_ANALYSIS_DIRECTION_H
#define OPSCOPE_ANALYSIS_DIRECTION_H

#include "store/profile.h"

enum direction { DIR_FORWARD, DIR_BACKWARD, DIR_OPTIMIZER, DIR_OTHER /* outside all ops */, DIRECTIONS };
extern const char *const direction_name[DIRECTIONS]; /* "forward", ... */

struct directions {
	uint8_t *gpu;       /* gpu_op row -> enum direction */
	uint32_t *forward;  /* gpu_op row -> the forward op (row in span) whose backward launched it; ROW_NONE for all others and
	                     * where no number or arrow leads to it */
};

struct directions *directions_new(const struct profile *p);
void directions_free(struct directions *d);

#endif
