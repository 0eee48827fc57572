/* CUDA and HIP graphs of a recording: which device work each launch of a graph replayed, and which launches belong to one graph.
 *
 * One call launches a whole graph. A "piece" is one kernel, copy or memset of the graph. The pieces of a launch are sorted by their start. For a graph
 * that was captured on one stream, that is the order of capture.
 *
 * Launches belong to one graph if they state the same id. Launches without ids belong to one graph if they replay the same work: on each stream the same
 * kinds, names, grids and blocks in the same order. Streams interleave otherwise in each launch; the pieces of each launch are therefore brought into the
 * order of the graph's typical launch.
 *
 * The typical launch of a graph is the first one of the most frequent work. Of equally frequent work, the longest counts. A launch of other work may be a
 * part of the typical launch, as where the recording begins or ends in the middle of it. It is one
 * - if the ids of its nodes say so, or
 * - if both ran on one stream, the launch is the begin or the end of the typical one, and one of its pieces stands in the typical launch only once. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPHS_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPHS_H

#include "store/profile.h"

/* Pieces of a launch, or the captured calls that made them nodes, in order. The arrays are the sequence's own (graph_sequence_release). */
struct graph_sequence {
	uint32_t *row;           /* of gpu_op for pieces; of span for calls */
	uint64_t *key;           /* graph_key */
	uint8_t *kind;           /* enum gpu_kind */
	uint32_t n;
	bool named;              /* false: some kernels have no name, and only the kinds may be compared */
};

struct graph_launch {
	uint32_t call;           /* of span */
	uint32_t graph;          /* of graphs.graph */
	uint32_t next;           /* launch of the same graph; ROW_NONE = this is the last */
	struct graph_sequence work;
	uint64_t content;        /* hash of the work: kinds, names, grids and blocks of each stream */
	uint32_t *part;          /* by piece: the same piece of the typical launch; NULL = the launch is not known to be a part of the typical one */
	int64_t start_ns, end_ns; /* first start and last end of its pieces */
};

struct graph {
	int64_t id;              /* as recorded; ID_NONE = not recorded */
	uint32_t launches;
	uint32_t first, last;    /* its launches, of graphs.launch */
	uint32_t typical;        /* launch, of graphs.launch */
	uint32_t odd;            /* launches of other work than the typical one: the graph was changed, or the recording was cut */
	uint32_t parts;          /* those of `odd` that have graph_launch.part */
	bool is_part;            /* its launches replayed a part of the graph `whole` (graphs_divide_parts) */
	uint32_t whole;          /* of graphs.graph; it stands before this one */
	uint32_t streams;        /* streams that its typical launch ran on */
	uint32_t turn, turns;    /* graphs that replay the same work in turns (graphs_divide): which one this is, and how many there are; turns 0 = no such graph */
};

struct graphs {
	struct graph_launch *launch; /* launches with work, in order of their calls' rows */
	uint32_t n;
	struct graph *graph;         /* in order of their first launch */
	uint32_t n_graphs, cap_graphs;
	uint32_t whole;              /* launches that the recording holds as one piece (gpu_is_graph); they are not in `launch` */
};

/* Whether a call of this name launches a graph. */
bool graph_is_launch(struct str name);

/* The graphs of *p. Needs PASS_CORRELATE. The caller frees them (graphs_free). O(spans + pieces log pieces). In a recording without graphs, each name is
 * looked at once. */
struct graphs *graphs_new(const struct profile *p);
/* Divides a graph without odd launches into n graphs: its launch number k goes to class of[k] < n. Class 0 keeps the graph's number; the others get new
 * numbers in order. Each class has a launch. `in_turns`: class c becomes turn c of n. O(launches of the graph). */
void graphs_divide(struct graphs *g, uint32_t graph, const uint32_t *of, uint32_t n, bool in_turns);
/* Takes the launches that have `part` out of their graphs. Launches with the same part of the same graph make one new graph. O(their pieces). */
void graphs_divide_parts(struct graphs *g);
void graphs_free(struct graphs *g);
/* What pieces and calls are compared by: kind and name ("" = not known) of a kernel. Of memsets and copies the kind alone, since recorders name them
 * differently. */
uint64_t graph_key(uint8_t kind, struct str name);
/* Whether the launch replays the same work as the typical launch of its graph. */
static inline bool graph_is_typical(const struct graphs *x, const struct graph_launch *l)
{
	const struct graph_launch *typical = &x->launch[x->graph[l->graph].typical];
	return l->content == typical->content && l->work.n == typical->work.n;
}
/* Hash of the grid and block of a piece, a row of gpu_op. */
uint64_t graph_shape(const struct profile *p, uint32_t gpu_op);
void graph_sequence_release(struct graph_sequence *s);

#endif
