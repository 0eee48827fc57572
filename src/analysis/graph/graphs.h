/* CUDA and HIP graphs of a recording: which device work each launch of a graph replayed, and which launches are of one graph.
 *
 * One call launches all of a graph. Its work is in order of its start, which of a graph that was captured on one stream is the order of capture. Launches are of one graph where they state its
 * id, or else replay the same work: the same kinds, names, grids and blocks, in the same order on each stream. How the streams interleave differs from launch to launch: the work of each launch is put into the
 * order of the graph's typical one.
 *
 * The typical launch of a graph is one of those whose work is the most frequent; of equally frequent ones, of the longest. A launch of other work may be a part of that of the typical one, as where the recording begins
 * or ends in the middle of it: where the nodes' ids say so, or, of one stream, where it is the begin or the end, and has a piece that the typical launch has once. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPHS_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPHS_H

#include "store/profile.h"

/* Pieces of work, or the calls that would have launched them, in order. */
struct graph_sequence {
	uint32_t *row;           /* of gpu_op, or of span */
	uint64_t *key;           /* equal where kind and name are; memsets and copies by their kind alone, since recorders name them differently */
	uint8_t *kind;           /* enum gpu_kind */
	uint32_t n;
	bool named;              /* false: keys are of kinds alone */
};

struct graph_launch {
	uint32_t call;           /* of span */
	uint32_t graph;          /* of graphs.graph */
	uint32_t next;           /* launch of the same graph; ROW_NONE = this is the last */
	struct graph_sequence work;
	uint64_t content;        /* equal where kinds, names, grids and blocks of each stream are */
	uint32_t *part;          /* piece -> the one of the typical launch that it is; NULL = the work is not known to be a part of that */
	int64_t start_ns, end_ns; /* of its work on the device */
};

struct graph {
	int64_t id;              /* as recorded; ID_NONE = not recorded */
	uint32_t launches;
	uint32_t first, last;    /* its launches, of graphs.launch */
	uint32_t typical;        /* launch, of graphs.launch */
	uint32_t odd;            /* launches whose work is another than that of the typical one: the graph was changed, or the recording was cut */
	uint32_t parts;          /* of these, launches that have `part` */
	bool is_part;            /* its launches replayed a part of the graph `whole` (graphs_divide_parts) */
	uint32_t whole;
	uint32_t streams;        /* that the work of its typical launch ran on */
	uint32_t piece, pieces;  /* it is one of several that replay the same work in turns (graphs_divide); pieces 0 = it is not */
};

struct graphs {
	struct graph_launch *launch; /* those with work, in order of their calls' rows */
	uint32_t n;
	struct graph *graph;         /* in order of their first launch */
	uint32_t n_graphs, cap_graphs;
	uint32_t whole;              /* launches of which the recording holds the graph as one piece (gpu_is_graph): they are not in launch */
};

/* Whether a call of this name launches a graph. */
bool graph_is_launch(struct str name);

/* Needs PASS_CORRELATE. O(spans + work log work). The caller's (graphs_free). A recording without graphs costs a look at each name. */
struct graphs *graphs_new(const struct profile *p);
/* Makes n graphs of one, whose launches all replay the same work: launch k becomes one of the graph of[k] < n; class 0 keeps the number, and each class has a launch. `in_turns`: they replay the same work in turns,
 * as pieces 0..n-1. O(launches of the graph). */
void graphs_divide(struct graphs *g, uint32_t graph, const uint32_t *of, uint32_t n, bool in_turns);
/* Makes graphs of their own of the launches that have `part`: those with the same pieces of the same graph become one. O(their work). */
void graphs_divide_parts(struct graphs *g);
void graphs_free(struct graphs *g);
/* Of pieces of this kind and name ("" = not known), as in graph_sequence.key. */
uint64_t graph_key(uint8_t kind, struct str name);
/* Whether the launch replays all that the typical one of its graph does. */
static inline bool graph_is_typical(const struct graphs *x, const struct graph_launch *l)
{
	const struct graph_launch *typical = &x->launch[x->graph[l->graph].typical];
	return l->content == typical->content && l->work.n == typical->work.n;
}
/* A hash of grid and block of a piece of work. */
uint64_t graph_shape(const struct profile *p, uint32_t gpu_op);
void graph_sequence_release(struct graph_sequence *s);

#endif
