/* A recording in which the work of a graph ran piece by piece, launched by its ops: another recording of the same program, without graphs. It serves as a capture. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_EAGER_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_EAGER_H

#include "analysis/graph/graph_match.h"

struct graph_eager;

/* *p must outlive it. The caller frees it (graph_eager_free). Reads *p when graph_eager_match is first called. */
struct graph_eager *graph_eager_new(const struct profile *p);
void graph_eager_free(struct graph_eager *x);

/* Whether the recording ran the work of a graph of *p as a stretch: pieces of the same kinds and names in the same order of start, with the same grids and
 * blocks if both recordings state them. If so, fills *m, with m->own as its capture; the caller releases it (graph_match_release). A piece that several
 * stretches launch by different ops is ambiguous. If not, *m is undefined.
 *
 * Needs PASS_NEST and PASS_CORRELATE of both recordings. O(work of the graph + occurrences of its rarest piece in the recording); the first call
 * O(work log work of the recording) besides. */
bool graph_eager_match(struct graph_eager *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m);

#endif
