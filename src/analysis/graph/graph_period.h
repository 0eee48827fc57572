/* The block that a graph's work repeats: of a model of equal layers, what one layer launches, or several ("attention alternates": two). It tells in which block a piece of work is, and nothing of ops. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_PERIOD_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_PERIOD_H

#include "analysis/graph/graphs.h"

struct graph_period {
	uint32_t pieces;         /* of one block; 0 = the work repeats none */
	uint32_t first;          /* piece with which the first block begins */
	uint32_t blocks;         /* that follow on each other, each equal to the one before in kinds and names */
};

/* The shortest block that repeats at least twice, one after the other, and makes up at least GRAPH_PERIOD_LEAST_PCT of the work. Blocks of more than GRAPH_PERIOD_MOST pieces are not looked for. O(pieces). */
enum { GRAPH_PERIOD_LEAST_PCT = 80, GRAPH_PERIOD_MOST = 4096 };
struct graph_period graph_period_find(const struct graph_sequence *work);

#endif
