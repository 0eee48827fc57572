/* Captures of graphs. Between the calls cudaStreamBeginCapture and cudaStreamEndCapture (and HIP's), launches do not run: they become nodes of a graph, in this
 * order.
 *
 * Captures of one thread may lie in each other. The inner capture has the calls between its own begin and end; the outer one has the others. A capture whose
 * end was not recorded has the calls up to the next capture or to the end of its thread. Such captures are loose: no call tells its stream, so that a call may
 * belong to the other capture. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_CAPTURES_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_CAPTURES_H

#include "analysis/graph/graphs.h"

struct graph_capture {
	const struct profile *p;  /* the recording that has it */
	uint32_t begin, end;      /* the two calls, rows of span. begin ROW_NONE: not known, and of the ranges around the calls only ops and modules belong to the
	                           * capture. end ROW_NONE: not recorded */
	struct graph_sequence work; /* rows of span: the calls that made nodes. In graph_match.own: the innermost range or the call that made the piece; ROW_NONE = not
	                             * known */
	uint64_t *op;             /* by call: graph_op_key of the op around it, with modules; 0 = no op is around it */
	uint64_t *plain;          /* by call: the same without modules */
	uint8_t *twin;            /* by call: 1 = another op launches a kernel of this name between the same two waits of a stream for another. Such calls may be
	                           * branches, which run in any order. NULL = no stream waited */
	bool loose;               /* the graph may have other nodes than these calls, or run them in another order: a stream waited for another, a graph was launched
	                           * into the capture, captures overlapped, or the end was not recorded */
	int64_t batch;            /* that an inference server states around the capture, "capture_32_FULL": 32; -1 = not stated */
};

struct graph_captures {
	struct graph_capture *v;
	uint32_t n, cap;
};

/* Adds the captures of a recording in order. *p must outlive them. Needs PASS_NEST and PASS_CORRELATE. O(spans + calls log calls).
 *
 * Calls whose work ran are left out. If other threads of the process launched work during a capture, as autograd does, the capture is added twice: with the
 * calls of its own thread, and with those of threads that captured nothing as well. Calls of other threads during several captures are left out: nobody knows
 * whose they are. */
void graph_captures_add(struct graph_captures *x, const struct profile *p);
/* The op of a row of graph_capture.work: the row itself if it is an op, else the op around it; ROW_NONE. */
static inline uint32_t graph_op_of(const struct profile *p, uint32_t row) { return p->span.kind[row] == SPAN_OP ? row : p->span.op[row]; }
/* Hash of an op's name, types and shapes and, with `modules`, of the modules around it; 0 for ROW_NONE. */
uint64_t graph_op_key(const struct profile *p, uint32_t op, bool modules);
/* The batch that the name of a server's range states (analysis/steps/serving.h): the padded size, else the tokens, else the requests; -1 = none. `of_capture`:
 * of a range around a capture; else of one around an iteration. */
int64_t graph_stated_batch(struct str name, bool of_capture);
/* Whether a range is the call of a module. */
bool graph_is_module(const struct profile *p, uint32_t span);
void graph_captures_release(struct graph_captures *x);

#endif
