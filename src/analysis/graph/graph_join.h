/* Attributes what graphs replayed to the ops that were captured, in the same recording or in others. graph_replay.h adds the result to the recording. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_JOIN_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_JOIN_H

#include "store/profile.h"

/* Whether the recording launches graphs and was not joined before. O(strings). */
bool graph_join_is_due(const struct profile *p);

/* The batches of the steps that launched graphs, as ranges of inference servers state them ("execute_32_...", "bs=32"): *batch, ascending, each once; the
 * caller frees it (mem_free). Returns how many; 0 if the batch of any launch is not known; -1 and *e if a pass failed, and *batch is then unset. Runs PASS_NEST
 * and PASS_CORRELATE on *p. */
int graph_join_batches(struct profile *p, int64_t **batch, struct err *e);

/* `others`: n recordings that may have captured the graphs of *p, or have run their work without graphs; passes run on them. Captures in *p count as well. *p may
 * be one of `others`: then what *p itself ran without graphs counts, too. Adds rows to *p and drops the results of its passes. -1 and *e: a pass failed. */
int graph_join(struct profile *p, struct profile *const *others, unsigned n, struct err *e);

#endif
