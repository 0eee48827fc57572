/* What the program itself said it held: `opscope.profile` (python/opscope/_held.py) runs inside the process and knows which block of memory is a parameter,
 * a gradient, state of an optimizer or an argument of a module. It writes this into the recording as a fact of its own, "opscope_held_memory":
 *
 *     {"version": 1, "moments": [ns since the epoch, ...], "kinds": ["PARAMETER", ...],
 *      "blocks": [[moment, c10 device type, device ordinal, kind, address, bytes], ...],
 *      "freed": [[ns since the epoch, c10 device type, device ordinal, address], ...], "left_out": blocks that were too many}
 *
 * The first moment is before the recording began: its blocks are what was held then, and "freed" says when some of them were given back, since torch does not
 * record that of host memory. A block of a later moment is one that was alive at that time. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_HELD_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_HELD_H

#include "store/profile.h"

/* Ascending by how much they say of what a block is for: one block can be several. */
enum memory_held_kind {
	HELD_NOTHING,
	HELD_TENSOR,          /* of the program; nothing else is known of it */
	HELD_BUFFER,          /* of a module: running statistics, tables */
	HELD_INPUT,           /* an argument of an outermost module's forward that no module had made */
	HELD_OPTIMIZER_STATE,
	HELD_GRADIENT,        /* .grad of a parameter */
	HELD_PARAMETER,
};

struct memory_held_block {
	int64_t addr, time_ns; /* on the trace's clock; INT64_MIN = before the recording */
	int64_t bytes;         /* of the storage; an allocator may have rounded up */
	enum memory_held_kind kind;
};

/* When a block that was held before was freed. */
struct memory_held_free {
	int64_t addr, time_ns;
};

/* Of one device. */
struct memory_held {
	struct memory_held_block *block; /* by address, then time */
	struct memory_held_free *freed;  /* the same */
	uint32_t n, n_freed;
	int64_t left_out;      /* blocks that the fact has no room for, of all devices */
	bool stated;           /* the recording has the fact: what was held before is known as far as Python knew */
	bool damaged;          /* not as it is written: nothing of it is used */
};

/* `device` as in memory_device(). O(n log n). */
void memory_held_read(struct memory_held *h, const struct profile *p, int device);
void memory_held_release(struct memory_held *h);

/* The most that is said of the block at `addr` that lived from from_ns to to_ns, both included, and has `bytes`. */
enum memory_held_kind memory_held_kind_of(const struct memory_held *h, int64_t addr, int64_t bytes, int64_t from_ns, int64_t to_ns);

/* When the block at `addr` that was held before was freed; INT64_MAX = not said. */
int64_t memory_held_freed_ns(const struct memory_held *h, int64_t addr);

#endif
