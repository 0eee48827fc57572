/* Which call of which capture each piece of a graph's work was.
 *
 * A capture whose calls are the same sequence of names as the work is the graph's. Of work on several streams only the order within a stream is that of capture: a piece is told by its
 * name, if all work of this name ran on one stream, and the capture has as many calls of it. Where the sequences differ, the capture that shares most with the work, and at least half, is aligned with it, of up to GRAPH_MOST_ALIGNED different ones of similar length: pieces that are paired alike
 * from the front and from the back are told, the others are ambiguous. Calls without names (CUDA's, in torch's traces) tell by position alone: they must be as many and of the same
 * kinds in the same order, the work must have run on one stream, the capture must not be loose,
 * and its ops must be such as launch kernels of these names (graph_plausible.h). */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_MATCH_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_MATCH_H

#include "analysis/graph/graph_captures.h"

struct graph_match {
	const struct graph_capture *capture; /* NULL = none is this graph's */
	uint8_t *evidence;       /* of each piece: enum gpu_evidence */
	uint32_t *call;          /* of each piece: of capture->work; ROW_NONE = none */
	bool ops_alone;          /* the ops are known, and their modules are not: captures that fit equally well have the same ops in other modules */
	bool implausible;        /* a capture without names fits, but for its ops */
	struct graph_capture own; /* of graph_nodes_match: what *capture is */
};

/* Captures as matching asks for them. */
struct graph_index;

/* *captures must outlive it, and not change. O(captures log captures + their calls). */
struct graph_index *graph_index_new(const struct graph_captures *captures);
void graph_index_free(struct graph_index *x);

/* Of the work of a launch. `batch`: of the step that launched it; -1 = not known: of captures that fit equally well, those of the least batch that is not
 * smaller count. `g`: its graph: of several that replay the same work in turns, each is the capture of its turn.
 * O(log captures + work log work). The caller's (graph_match_release). */
void graph_match_find(struct graph_match *m, struct graph_index *x, const struct profile *p, const struct graph_sequence *work, int64_t batch, const struct graph *g);
/* The least batch of any capture that is not smaller; -1 = there is none. */
int64_t graph_padded_batch(const struct graph_index *x, int64_t batch);
/* How many captures fit equally well, of those that count. 0 also where they are of several batches. */
uint32_t graph_count_equal(const struct graph_index *x, const struct graph_sequence *work, uint32_t streams, int64_t batch);
void graph_match_release(struct graph_match *m);

#endif
