/* Nodes of graphs by their ids: recorders that tell when a node was made, and of which one a node is a copy (nsys, opscope's own), let each replayed piece of work be followed to the range that made its node.
 *
 * Such a moment is a span of kind SPAN_OTHER, of category "cuda_graph": ext_id is the node, link_id the one that it was copied from, ID_NONE = none. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_NODES_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_NODES_H

#include "analysis/graph/graph_match.h"

struct graph_nodes;

/* Needs PASS_NEST and PASS_CORRELATE. NULL: the recording tells of no nodes. */
struct graph_nodes *graph_nodes_new(const struct profile *p);
void graph_nodes_free(struct graph_nodes *x);

/* Fills *m, with m->own as its capture, where the node of at least one piece of the work is known, and was made in an op; else false, and *m is undefined. The caller's (graph_match_release). */
bool graph_nodes_match(const struct graph_nodes *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m);

#endif
