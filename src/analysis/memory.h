/* Allocations and frees (B-23): which device, which belongs to which. pass_memory (analysis.h) finds the op of each. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_H
#define OPSCOPE_ANALYSIS_MEMORY_H

#include "store/profile.h"

enum { MEMORY_CPU = -1 };

/* MEMORY_CPU, or the ordinal of the GPU or other accelerator that row `i` is about. */
int memory_device(const struct profile *p, uint32_t i);

/* True for allocations and frees, false for [OutOfMemory] records. */
bool memory_is_event(const struct profile *p, uint32_t i);

/* Totals after the event are recorded (torch 1.10 and later). */
static inline bool memory_has_totals(const struct profile *p, uint32_t i)
{
	return p->memory.total_allocated[i] != ID_NONE;
}

/* One block's life. */
struct memory_pair {
	uint32_t alloc;    /* row that allocated it; ROW_NONE = before the recording */
	uint32_t release;  /* row that freed it; ROW_NONE = not before the end of the recording */
};

/* Pairs each allocation on `device` with the next free of the same address, in order of the allocation (of the free where
 * there is none). Events without an address and of zero bytes are left out. The array is the caller's (mem_free). */
uint32_t memory_pairs(const struct profile *p, int device, struct memory_pair **out);

#endif
