/* Gives the work of graphs the ops that captured it: the ranges of the capture that are around the calls that made its nodes (ops, annotations, Python's frames and modules) are copied to each launch of the graph, on
 * a thread of their own, and the work's external id becomes that of its op's copy. Whatever asks for the op of device work then finds it, as of work that was launched one by one.
 *
 * Copies have the category REPLAY_CATEGORY. They did not run: each begins and ends some ns after its launch did, in the order of capture. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_REPLAY_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_REPLAY_H

#include "analysis/graph/graph_match.h"

/* Copies are no more than this in all. Beyond it Python's frames are left out, but those of modules, then whole launches. */
enum { GRAPH_MOST_COPIES = 1 << 23 };

/* match[i]: of graphs->graph[i]. *p must have no passes done but those of matching, whose results are dropped. Sets gpu_op.evidence of all work of graphs. Returns how many launches could not be given copies. */
uint32_t graph_replay_add(struct profile *p, const struct graphs *graphs, const struct graph_match *match);

#endif
