/* What the program itself says of the memory that it holds. `opscope.profile` (python/opscope/_held.py) runs inside the process, and knows which block of memory is a
 * parameter, a gradient, state of an optimizer or an argument of a module. It writes that into the recording as the fact "opscope_held_memory":
 *
 *     {"version": 1, "moments": [ns since the epoch, ...], "kinds": ["PARAMETER", ...],
 *      "blocks": [[moment, c10 device type, device ordinal, kind, address, bytes], ...],
 *      "freed": [[ns since the epoch, c10 device type, device ordinal, address], ...], "left_out": number of blocks for which there was no room}
 *
 * `moment` and `kind` of a block are places in "moments" and "kinds", from 0. The first moment is before the recording: its blocks are those that were held then. "freed" says
 * when blocks of the first moment were freed, in host memory alone: torch does not record that. A block of a later moment was alive at that moment. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_HELD_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_HELD_H

#include "store/profile.h"

/* Ascending by how much a kind says of what the block is for. A block can be of several kinds: the greatest counts. */
enum memory_held_kind {
	HELD_NOTHING,
	HELD_TENSOR,          /* a tensor; nothing else is known */
	HELD_BUFFER,          /* a buffer of a module: running statistics, tables */
	HELD_INPUT,           /* an argument of an outermost module's forward() that no outermost module returned in this step */
	HELD_OPTIMIZER_STATE,
	HELD_GRADIENT,        /* .grad of a parameter */
	HELD_PARAMETER,
};

struct memory_held_block {
	int64_t addr, time_ns; /* on the trace's clock; INT64_MIN = before the recording */
	int64_t bytes;         /* size of the storage; the allocator's block may be larger, by rounding */
	enum memory_held_kind kind;
};

/* When a block that was held before the recording was freed. */
struct memory_held_free {
	int64_t addr, time_ns;
};

/* The fact, as far as one device is concerned. */
struct memory_held {
	struct memory_held_block *block; /* by address, then time */
	struct memory_held_free *freed;  /* by address, then time */
	uint32_t n, n_freed;
	int64_t left_out;      /* blocks of all devices for which the fact had no room */
	bool stated;           /* the recording has the fact, so that all blocks that Python knew of are known */
	bool damaged;          /* the fact is not of the form above: nothing of it is used */
};

/* Reads what the fact says of `device` (as in memory_device()). The caller releases *h. O(n log n). */
void memory_held_read(struct memory_held *h, const struct profile *p, int device);
void memory_held_release(struct memory_held *h);

/* The greatest kind of the block of `bytes` at `addr` that lived from from_ns to to_ns, both included. */
enum memory_held_kind memory_held_kind_of(const struct memory_held *h, int64_t addr, int64_t bytes, int64_t from_ns, int64_t to_ns);

/* When the block at `addr` that was held before the recording was freed; INT64_MAX = not stated. */
int64_t memory_held_freed_ns(const struct memory_held *h, int64_t addr);

#endif
