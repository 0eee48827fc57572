/* Adds the ranges of captures to each launch of a graph, so that whoever asks for the op of replayed work finds it, as of work that was launched one by one.
 *
 * The ranges around the captured calls (ops, annotations, Python's frames, modules) are copied to each launch, on a thread of their own. The external id of a
 * piece becomes that of its op's copy. Copies have the category REPLAY_CATEGORY. They did not run: each begins and ends some ns after the begin of its launch,
 * in the order of capture. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_REPLAY_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_REPLAY_H

#include "analysis/graph/graph_match.h"

/* Limit of copies, which bounds memory. Beyond it, Python's frames but those of modules are left out, then the copies of whole launches. */
enum { GRAPH_MOST_COPIES = 1 << 23 };

/* match[i]: of graphs->graph[i]. *p has the results of PASS_NEST and PASS_CORRELATE and of no other pass; they do not fit the new rows, and the caller drops them
 * (analysis_forget). Sets gpu_op.evidence of all work of graphs. Returns how many launches got no copies because of the limit. */
uint32_t graph_replay_add(struct profile *p, const struct graphs *graphs, const struct graph_match *match);

#endif
