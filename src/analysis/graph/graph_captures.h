/* Captures of graphs: between two calls (cudaStreamBeginCapture, cudaStreamEndCapture and HIP's) launches do not run, but become nodes of a graph, in this order.
 *
 * A capture within another one of its thread has the calls between its own two; the outer one has the others. One that the recording does not end has the calls up to the next one, or to the end of its thread. No call tells its
 * stream, so that the calls of these must name their kernels to be of use. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_CAPTURES_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_CAPTURES_H

#include "analysis/graph/graphs.h"

struct graph_capture {
	const struct profile *p;  /* the recording that has it */
	uint32_t begin, end;      /* the two calls, rows of span; begin ROW_NONE = not known: then only ops and modules are of the capture; end ROW_NONE = not recorded */
	struct graph_sequence work; /* rows are of span: the calls that made nodes, or the innermost ranges in which they were made; of graph_nodes.h ROW_NONE = not known */
	uint64_t *op;             /* of each call: equal where the op around it has the same name, types and shapes, and is in the same modules; 0 = no op is around it */
	uint64_t *plain;          /* the same without modules */
	uint8_t *twin;            /* of each call: between the same two waits of a stream for another, a call of another op launches a kernel of this name: branches run in any order. NULL = no stream waited */
	bool loose;               /* the calls need not be just the nodes of one graph in the order in which it runs them: a stream waited for another, a graph was launched into the capture, captures overlapped, or the end was not recorded */
	int64_t batch;            /* of the inference server that captured it, "capture_32_FULL"; -1 = not stated */
};

struct graph_captures {
	struct graph_capture *v;
	uint32_t n, cap;
};

/* Adds the captures of a recording, in order; *p must outlive them. Needs PASS_NEST and PASS_CORRELATE. A capture of which other threads of the process launched work meanwhile, as autograd does, is there twice: of its
 * own thread, and of all that captured nothing themselves; while several captures of a process overlap, nobody knows whose that work is. Calls whose work ran are none of the graph.
 * O(spans + calls log calls). */
void graph_captures_add(struct graph_captures *x, const struct profile *p);
/* The op of a row of such a sequence. */
static inline uint32_t graph_op_of(const struct profile *p, uint32_t row) { return p->span.kind[row] == SPAN_OP ? row : p->span.op[row]; }
/* Equal of ops that have the same name, types and shapes and, `modules`, are in the same modules; 0 of none. */
uint64_t graph_op_key(const struct profile *p, uint32_t op, bool modules);
/* How large the batch is that a server's range around an iteration, or around a capture, states (analysis/steps/serving.h): padded, if it says so, else tokens, else requests; -1 = it states none. */
int64_t graph_stated_batch(struct str name, bool of_capture);
/* A range that tells a module. */
bool graph_is_module(const struct profile *p, uint32_t span);
void graph_captures_release(struct graph_captures *x);

#endif
