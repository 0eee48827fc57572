/* Allocations and frees: which device, which belongs to which. pass_memory (analysis.h)
 * finds the op of each. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_H

#include "base/err.h"
#include "store/profile.h"

enum { MEMORY_CPU = -1 };

/* First moment of the trace, from which reports of memory count their times; 0 where nothing was recorded. */
int64_t memory_zero_ns(const struct profile *p);

/* MEMORY_CPU, or the ordinal of the GPU or other accelerator that row `i` is about. */
int memory_device(const struct profile *p, uint32_t i);

/* The device that `wanted` means: "cpu", an ordinal, "cuda:1"; NULL = the first GPU that has events, else the CPU. ERR_USAGE when it
 * is none of these, ERR_DATA when the trace has no events of it. */
int memory_device_choose(const struct profile *p, const char *wanted, int *device, struct err *e);

/* True for allocations and frees, false for [OutOfMemory] records. */
bool memory_is_event(const struct profile *p, uint32_t i);

/* For each row, the innermost op, annotation or Python frame of its thread at that time; ROW_NONE. The array is the caller's
 * (mem_free). */
uint32_t *memory_around(const struct profile *p);

/* Totals after the event are recorded (torch 1.10 and later). */
static inline bool memory_has_totals(const struct profile *p, uint32_t i)
{
	return p->memory.total_allocated[i] != ID_NONE;
}

/* The most that a device held at a time. */
struct memory_peak {
	uint32_t allocated;      /* first row with the highest total_allocated; ROW_NONE = no totals recorded */
	uint32_t reserved;       /* the same of total_reserved */
	int64_t net;             /* highest sum of what was allocated and freed since the start, and what of it was held before: more is freed
	                          * than was allocated. A lower bound, for old traces */
	int64_t sum, lowest;     /* that sum at the end, and the lowest; at the limit where it leaves 64 bits */
	uint64_t events;         /* allocations and frees */
	uint64_t out_of_memory;  /* failed allocations */
};

/* Peaks of all devices from the events with first_ns <= time <= last_ns, in one pass: of device d (memory_device) at
 * (*out)[d - MEMORY_CPU]. Returns how many there are; devices without events are all zero and ROW_NONE. The array is the
 * caller's (mem_free). */
size_t memory_peaks(const struct profile *p, int64_t first_ns, int64_t last_ns, struct memory_peak **out);

/* One block's life. */
struct memory_pair {
	uint32_t alloc;    /* row that allocated it; ROW_NONE = before the recording */
	uint32_t release;  /* row that freed it; ROW_NONE = not before the end of the recording */
};

/* Pairs each allocation on `device` with the next free of the same address, in order of the allocation (of the free where
 * there is none). Events without an address and of zero bytes are left out. The array is the caller's (mem_free). */
uint32_t memory_pairs(const struct profile *p, int device, struct memory_pair **out);

/* A block that the allocator had given away when a memory snapshot was taken. */
struct memory_live {
	uint32_t block;    /* row of p->memory_block */
	uint32_t alloc;    /* row of p->memory that allocated it; ROW_NONE = before the recording, or its record was lost */
};

/* The blocks on `device` in a state that begins with "active", in the order of p->memory_block. The array is the caller's (mem_free). Without a snapshot there are none. */
uint32_t memory_live(const struct profile *p, int device, struct memory_live **out);

/* Whether the block was freed, and only waits for another stream to be done with it. */
bool memory_block_waits(const struct profile *p, uint32_t block);

#endif
