/* Blocks of memory as the TensorBoard plugin lists them (its RunProfile.get_memory_events), with its arithmetic. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_MEMORY_BLOCKS_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_MEMORY_BLOCKS_H

#include "query/window.h"

struct memory_block {
	int64_t bytes;
	uint32_t alloc, release; /* memory rows; ROW_NONE = not recorded */
	uint32_t op, around;     /* nodes of the plugin's tree: the op that allocated it, what is around that; ROW_NONE = none */
};

struct optree;

/* The blocks allocated on `device` (freed on it, if the allocation was not recorded) by events in the window, in the plugin's order: those that were
 * freed, by their release; those that were not; those allocated before. An allocation and the next free of its address belong together, whichever
 * device the free was recorded of; of two allocations of an address without a free between them the first is lost, as of two such frees.
 * `t` follows the plugin's rules. The array is the caller's (mem_free). */
uint32_t memory_blocks(const struct profile *p, const struct optree *t, const struct window *w, int device, struct memory_block **out);

/* "aten::mm"; "aten::linear (aten::empty)" for what begins with aten::empty, the parent being "CallTreeRoot" at the top; "<unknown>". In the buffer. */
struct buf;
void memory_block_name(const struct profile *p, const struct optree *t, const struct memory_block *x, struct buf *b);

/* From memory row `from` (ROW_NONE = the first moment of the trace) to `to`, in units of `unit_ns`: a difference of doubles in us times a factor. */
double memory_span_in(const struct profile *p, uint32_t from, uint32_t to, double unit_ns);

/* What it displays of a number: two decimals, or as many as show the first digit of what is smaller. */
double memory_shown(double v);

#endif
