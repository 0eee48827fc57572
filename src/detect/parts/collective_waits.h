/* Waiting and transfer told apart, where one recording holds all GPUs that take part in its collectives. */
#ifndef OPSCOPE_DETECT_PARTS_COLLECTIVE_WAITS_H
#define OPSCOPE_DETECT_PARTS_COLLECTIVE_WAITS_H

#include "detect/parts/collectives.h"

struct collective_waits {
	bool known;              /* false: a GPU alone, more ranks than GPUs, or collectives that do not match one by one */
	uint64_t n;              /* collectives of each GPU */
	int64_t transfer_ns;     /* the shortest of each, added up: transfer, as far as one GPU came last without waiting */
	int64_t wait_ns;         /* what the others lasted longer, mean over the GPUs */
	int32_t last_device;     /* the GPU that came last most often */
	uint64_t last_n;         /* how often */
};

/* Collectives match where each GPU that has any has as many, with the same kernels in the same order, and all of one go on at one moment (but for
 * broadcasts, which the sender may end before the others begin). O(n log n). */
struct collective_waits collective_waits_find(const struct profile *p, const struct collectives *c);

#endif
