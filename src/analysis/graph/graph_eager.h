/* A recording in which the work of a graph ran piece by piece, launched by its ops: another recording of the same program, without graphs. It serves as a capture. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_EAGER_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_EAGER_H

#include "analysis/graph/graph_match.h"

struct graph_eager;

/* Looks at nothing before the first question. *p must outlive it. */
struct graph_eager *graph_eager_new(const struct profile *p);
void graph_eager_free(struct graph_eager *x);

/* Fills *m, with m->own as its capture, where the device work of the recording holds that of a graph of *p as a stretch: the same kinds and names, and grids and blocks where both recordings state them, in the same order of start. Of pieces that
 * several such stretches launch by different ops, none is told. Else false, and *m is undefined. Needs PASS_NEST and PASS_CORRELATE of both. O(work of the graph + how often its rarest piece stands in the recording); of the first
 * question O(work of the recording). The caller's (graph_match_release). */
bool graph_eager_match(struct graph_eager *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m);

#endif
