/* Two sequences, aligned: which element of A stands beside which of B, both in order.
 *
 * Elements are equal where their hashes are. Equal ones at both ends are paired first. A range of up to ALIGN_CELLS elements a side is then aligned by dynamic programming. A longer range is
 * split at the elements whose hash each side has once, as many as stand in one order; where none is left, it is aligned within a band about its diagonal. So at most
 * ALIGN_CELLS cells are computed for an element, and O(n log n) time and memory suffice. */
#ifndef OPSCOPE_BASE_ALIGN_H
#define OPSCOPE_BASE_ALIGN_H

#include <stdint.h>

#define ALIGN_NONE UINT32_MAX

enum { ALIGN_SAME = 255, ALIGN_CELLS = 64 };

struct align_ask {
	const uint64_t *hash[2]; /* of A and of B */
	uint32_t n[2];           /* elements */
	/* How well element `a` of A and `b` of B fit together, whose hashes differ: 0 = not at all, at most ALIGN_SAME - 1. NULL = only equal ones do. */
	unsigned (*fit)(const void *context, uint32_t a, uint32_t b);
	const void *context;
};

/* match[a] gets the element of B beside element `a`, or ALIGN_NONE. Those of B ascend. Of two sides of up to ALIGN_CELLS elements the sum of fits, with ALIGN_SAME for equal ones, is the
 * greatest that there is. `match` has n[0] elements. */
void align_sequences(const struct align_ask *ask, uint32_t *match);

#endif
