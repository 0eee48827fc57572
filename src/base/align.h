/* Two sequences, aligned: which element of A stands beside which of B, both in order.
 *
 * Elements are equal where their hashes are. Equal ones at both ends are paired first. What is left, n elements of A and m of B, is aligned by dynamic programming over the whole table where
 * n m <= ALIGN_CELLS (n + m): of equal lengths up to twice ALIGN_CELLS. A longer range is split at the elements whose hash each side has once, as many as stand in one order, and its parts are aligned
 * as it is. Where none is left, or after ALIGN_LEVELS splits within each other, it is aligned within a band about its diagonal. So some ALIGN_CELLS cells are computed for an element, and
 * O(n log n) time and O(n) memory suffice.
 *
 * Of alignments of equal sums that wins whose pairs stand earlier: from the end on, an element of A is left alone rather than one of B, and one of B rather than that both are paired. */
#ifndef OPSCOPE_BASE_ALIGN_H
#define OPSCOPE_BASE_ALIGN_H

#include <stdint.h>

#define ALIGN_NONE UINT32_MAX

/* ALIGN_LEVELS: each level sorts all elements once. */
enum { ALIGN_SAME = 255, ALIGN_CELLS = 64, ALIGN_LEVELS = 8 };

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
