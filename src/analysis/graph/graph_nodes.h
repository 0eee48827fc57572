/* Nodes of graphs by their ids. Some recorders (nsys, opscope's own) tell when a node was made, and which node it is a copy of. Each replayed piece can then
 * be followed to the range in which its node was made.
 *
 * The making of a node is a span of kind SPAN_OTHER and category "cuda_graph": ext_id is the node, link_id the node that it was copied from (ID_NONE: it is
 * no copy). */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_NODES_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_NODES_H

#include "analysis/graph/graph_match.h"

struct graph_nodes;

/* Needs PASS_NEST and PASS_CORRELATE. The caller frees it (graph_nodes_free). NULL: the recording tells of no nodes. O(spans + nodes log nodes). */
struct graph_nodes *graph_nodes_new(const struct profile *p);
void graph_nodes_free(struct graph_nodes *x);

/* Whether the node of at least one piece of `work` was made in an op. If so, fills *m, with m->own as its capture; the caller releases it
 * (graph_match_release). If not, *m is undefined. */
bool graph_nodes_match(const struct graph_nodes *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m);

#endif
