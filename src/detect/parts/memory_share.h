/* How full the GPUs' memory was. */
#ifndef OPSCOPE_DETECT_PARTS_MEMORY_SHARE_H
#define OPSCOPE_DETECT_PARTS_MEMORY_SHARE_H

#include "store/profile.h"

enum memory_held {
	MEMORY_ALLOCATED, /* by tensors */
	MEMORY_RESERVED,  /* by the allocator, which keeps freed blocks */
};

/* The highest share of a GPU's memory that was held at a time, in percent; of several GPUs, that of the fullest. -1 = the input does not state the totals or
 * the size of the memory. */
double memory_share_pct(const struct profile *p, enum memory_held held);

#endif
