/* What device or host memory was used for, block by block, and the changes over time: the answer of torch's memory timeline
 * (torch/profiler/_memory_profiler.py) as far as a trace carries it.
 *
 * torch follows the live tensors of the process; a trace has the address, size and moment of each allocation and the ops around
 * it, but not which tensor is which. So a block has a category only where these rules, in this order, give one:
 *   TEMPORARY        allocated and freed inside one call of an op, by an aten::empty*, and an op called in between takes a
 *                    tensor of that size. Others of this kind are workspaces of a library: torch never sees a tensor there and
 *                    says Unknown, too.
 *   GRADIENT         allocated while autograd runs a node, still held when that backward pass is over, and AccumulateGrad took a
 *                    tensor of that size in it (not asked where shapes were not recorded)
 *   AUTOGRAD_DETAIL  any other allocated while autograd runs a node and freed before the pass is over
 *   OPTIMIZER_STATE  allocated inside Optimizer.step and held beyond its end
 *   INPUT            allocated while the data loader is asked for a batch and held beyond; on an accelerator, by an op that copies
 *                    from the host, and freed before the recording ends; by an op without tensor arguments (zeros, rand), and freed
 *                    by autograd: it was kept for the backward pass
 *   ACTIVATION       allocated by any other op with tensor arguments and held beyond its end; where no shapes were recorded, by any op but those that make
 *                    a tensor of nothing (zeros, rand, ...)
 *   PARAMETER        before the recording: as many bytes as AccumulateGrad took in the pass where it took most, since a gradient is
 *                    as large as its parameter. Only on the device that holds all gradients; a size that a block allocated in the
 *                    recording and never freed has, too, is left out.
 * Before all of these comes what the program itself said (memory_held.h): which blocks are parameters, gradients, optimizer state and arguments of modules, and
 * what was held before. Then no parameter is guessed from gradients.
 *   With an execution trace (memory_storages.h) what was held before is, in place of that guess, the storages that ops take and no op has made.
 * An input that states the categories itself, a file of export_memory_timeline, has those. All else is Unknown, with a reason. Versions of a tensor are not in a trace: no INCREMENT_VERSION. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_CATEGORIES_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_CATEGORIES_H

#include "base/err.h"
#include "store/profile.h"

/* In torch's order. */
enum memory_category {
	MEMORY_PARAMETER,
	MEMORY_OPTIMIZER_STATE,
	MEMORY_INPUT,
	MEMORY_TEMPORARY,
	MEMORY_ACTIVATION,
	MEMORY_GRADIENT,
	MEMORY_AUTOGRAD_DETAIL,
	MEMORY_UNKNOWN,
	MEMORY_CATEGORIES,
};
extern const char *const memory_category_name[MEMORY_CATEGORIES]; /* "PARAMETER", ..., "Unknown" */

/* torch's numbers. */
enum memory_action { MEMORY_PREEXISTING = 1, MEMORY_CREATE, MEMORY_INCREMENT_VERSION, MEMORY_DESTROY };

/* Why a block is MEMORY_UNKNOWN. */
enum memory_why {
	MEMORY_KNOWN,
	MEMORY_WHY_WORKSPACE,   /* inside one op, without a sign of a tensor */
	MEMORY_WHY_OPTIMIZER,   /* allocated and freed inside Optimizer.step: intermediate values of the update */
	MEMORY_WHY_OUTSIDE,     /* allocated outside of any op */
	MEMORY_WHY_NO_TENSOR,   /* by an op without tensor arguments, not kept for a backward pass */
	MEMORY_WHY_COPIED,      /* copied from the host and never freed: a batch or a parameter */
	MEMORY_WHY_OUTLIVES,    /* made in the backward pass and held beyond it, but no gradient has its size */
	MEMORY_WHY_BEFORE,      /* held since before the recording */
	MEMORY_WHY_NO_ADDRESS,  /* the trace does not say which block was freed */
	MEMORY_WHY_STATED,      /* the input states categories (input/memory_timeline.c), and this is the one */
	MEMORY_WHY_BUFFER,      /* the program said so (memory_held.h) */
	MEMORY_WHY_FORWARD,     /* by an execution trace (memory_storages.h): only ops outside of autograd and the optimizer take it */
	MEMORY_WHY_PROGRAM,     /* the program said that it is a tensor, and nothing else */
	MEMORY_WHYS,
};
extern const char *const memory_why_text[MEMORY_WHYS];

struct memory_change {
	int64_t time_ns;   /* -1 of MEMORY_PREEXISTING */
	int64_t bytes;     /* allocated; negative: freed */
	uint8_t action, category, why;
};

struct memory_timeline {
	int device;                   /* as in memory_device() */
	struct memory_change *change; /* by time; what was held before comes first */
	uint32_t n, n_before;         /* changes, and how many of them are MEMORY_PREEXISTING */
	uint64_t blocks[MEMORY_CATEGORIES];       /* allocated during the recording */
	uint64_t unknown_blocks[MEMORY_WHYS];
	int64_t unknown_bytes[MEMORY_WHYS];       /* sum of their sizes; INT64_MAX beyond 64 bits */
	uint8_t *category_of, *why_of; /* by row of p->memory, of this device: of the block that it allocates or frees */
	int64_t kept_bytes;           /* of what was held before: neither allocated nor freed in the recording, and of no known category */
	int64_t kept_of[MEMORY_CATEGORIES]; /* all of what was held before and is not freed in the recording, kept_bytes among the Unknown */
	bool held_stated, held_damaged; /* as in struct memory_held */
	int64_t held_left_out;
	bool backward;                /* the recording has a backward pass */
	bool before_is_whole;         /* all that was held at the beginning is in: the allocator's totals say how much it was */
	int64_t peak_bytes;           /* highest sum of the changes; a lower bound unless before_is_whole */
	int64_t peak_ns;              /* when it was first reached; -1 = before the first change */
};

/* Needs PASS_NEST, PASS_CORRELATE and PASS_MEMORY. O(ranges + n log n). NULL and an error when a sum leaves 64 bits. */
struct memory_timeline *memory_timeline_new(const struct profile *p, int device, struct err *e);
void memory_timeline_free(struct memory_timeline *t);

/* What kept_bytes are, in words: a sentence without its end that says what they most likely are, and that this is a guess. */
const char *memory_kept_text(const struct memory_timeline *t);

#endif
