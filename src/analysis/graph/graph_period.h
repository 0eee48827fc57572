/* The block that a graph's work repeats. In a model of equal layers, a block is what one layer launches. In a model whose layers alternate two kinds of
 * attention, a block is what two layers launch. A block says nothing of ops. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_PERIOD_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_PERIOD_H

#include "analysis/graph/graphs.h"

struct graph_period {
	uint32_t pieces;         /* of one block; 0 = the work repeats no block */
	uint32_t first;          /* piece with which the first block begins */
	uint32_t blocks;         /* one after the other, each with the kinds and names of the one before */
};

/* The shortest block that stands at least twice in a row, and whose repetitions make up at least GRAPH_PERIOD_LEAST_PCT of the work: embedding and head of a
 * model repeat nothing. Blocks of more than GRAPH_PERIOD_MOST pieces are not looked for, which is far more than a layer launches. O(pieces). */
enum { GRAPH_PERIOD_LEAST_PCT = 80, GRAPH_PERIOD_MOST = 4096 };
struct graph_period graph_period_find(const struct graph_sequence *work);

#endif
