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

/* The kind of the diagnostic that recordings of captures were read in vain. */
#define DIAG_CAPTURE_IN_VAIN "capture-in-vain"

/* What recordings of captures came to. */
struct graph_tried {
	uint32_t graphs;         /* whose launches have work of which single pieces were recorded */
	uint32_t captures;       /* that the other recordings hold */
	uint32_t told;           /* graphs of which other recordings tell ops */
	uint32_t ambiguous;      /* graphs that a capture fits, though no op is told */
	uint32_t untold;         /* graphs that nothing fits */
	uint32_t differs;        /* of the longest of these, the place, from 1 on, at which the capture that has most of its beginning differs; 0 = no capture names its kernels, or the graph's work ran on several streams */
	struct str replayed, captured; /* what stands there, a kernel's name or "copy", "set"; "" = one of the two had ended. Of the recordings */
};

/* `captures`: recordings that may have captured the graphs of *p, besides *p; passes run on them. *p may stand among them: then what it ran without graphs serves as a capture, too. What *p had of passes is dropped, as *p gets rows. *tried: what came of it. -1 and *e: a pass failed. */
int graph_join(struct profile *p, struct profile *const *captures, unsigned n, struct graph_tried *tried, struct err *e);

#endif
