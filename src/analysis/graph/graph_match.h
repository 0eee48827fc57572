/* Which call of which capture made each piece of a graph.
 *
 * Equal sequences: a capture belongs to the graph if its calls name the same kernels in the same order.
 *
 * Several streams: only the order within a stream is the order of capture. The k-th piece of a name belongs to the k-th call of this name, if all pieces of
 * the name ran on one stream and the capture has as many calls of the name.
 *
 * Sequences that differ: up to GRAPH_MOST_ALIGNED captures of the most similar length are aligned with the work. The capture with most in common counts, if
 * it has at least half in common. A piece is told if the first and the last of the best alignments pair it with the same op; else it is ambiguous.
 *
 * Calls without names (CUDA's in torch's traces): the position alone tells. The calls must be as many as the pieces, of the same kinds in the same order; the
 * work must have run on one stream; the capture must not be loose; and its ops must be able to launch kernels of these names (graph_plausible.h). */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_MATCH_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_MATCH_H

#include "analysis/graph/graph_captures.h"

/* Released by graph_match_release. It must stay where it is while `capture` points to `own`. */
struct graph_match {
	const struct graph_capture *capture; /* of this graph; NULL = none is known */
	uint8_t *evidence;       /* by piece: enum gpu_evidence */
	uint32_t *call;          /* by piece: its call, of capture->work; ROW_NONE = not known */
	bool ops_alone;          /* the ops are known and their modules are not: captures that fit equally well have the same ops in other modules */
	bool implausible;        /* a capture without names fits, but its ops do not (graph_plausible.h) */
	struct graph_capture own; /* made of other facts than a capture (graph_nodes.h, graph_eager.h); then *capture is this */
};

/* An index of captures for matching. */
struct graph_index;

/* *captures must outlive it and not change. The caller frees it (graph_index_free). O(captures log captures + their calls). */
struct graph_index *graph_index_new(const struct graph_captures *captures);
void graph_index_free(struct graph_index *x);

/* Fills *m for the work of the typical launch of graph *g; the caller releases it (graph_match_release). `batch`: of the step that launched it; -1 = not
 * known. Of captures that fit equally well, those of the least batch that is not smaller count. Of graphs that replay the same work in turns, each gets the
 * capture of its turn. O(log captures + work log work). */
void graph_match_find(struct graph_match *m, struct graph_index *x, const struct profile *p, const struct graph_sequence *work, int64_t batch, const struct graph *g);
/* The least batch of any capture that is not smaller than `batch`; -1 = there is none, or batch < 0. */
int64_t graph_padded_batch(const struct graph_index *x, int64_t batch);
/* How many captures fit this work equally well, by graph_match_find's rules; 0 also if they are of several batches. */
uint32_t graph_count_equal(const struct graph_index *x, const struct graph_sequence *work, uint32_t streams, int64_t batch);
/* Takes away what is said of a piece. */
static inline void graph_match_drop(struct graph_match *m, uint32_t piece, enum gpu_evidence why)
{
	m->evidence[piece] = (uint8_t)why;
	m->call[piece] = ROW_NONE;
}
void graph_match_release(struct graph_match *m);

#endif
