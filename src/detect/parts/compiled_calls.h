/* Calls of functions under torch.compile: which calls were broken into several graphs, and what the host does between the graphs.
 *
 * From torch 2.1 on each compiled frame has a range ("Torch-Compiled Region: 0/0"). Where Dynamo meets what it cannot trace, the rest of the frame runs as
 * another frame inside the first ("torch_dynamo_resume_in_forward_at_12"); a frame that it gives up calls compiled frames one by one. So several frames
 * inside each other, or in one call by torch.compile's own frame, tell of breaks; several one after the other, without that frame, tell of nothing. */
#ifndef OPSCOPE_DETECT_PARTS_COMPILED_CALLS_H
#define OPSCOPE_DETECT_PARTS_COMPILED_CALLS_H

#include "detect/parts/shared.h"

/* The part of compiled code that a range is, by its name. */
enum compiled_part {
	COMPILED_OTHER, COMPILED_FRAME, COMPILED_GRAPH, COMPILED_BACKWARD,
	COMPILED_ENTRY,          /* the frame of torch.compile around each call of a function that it was given */
	COMPILED_RESUME,         /* what Dynamo names the rest of a frame; before torch 2.1 the frame of "<resume in forward>" */
	COMPILED_OWN,            /* guards and other work of Dynamo */
};

/* A call of a function that was compiled. */
struct compiled_call {
	uint32_t span;           /* the entry's frame, else the outermost compiled frame */
	uint32_t frames, breaks; /* compiled frames in it; continuations of frames, and frames inside or behind others */
	int64_t graph_ns;        /* start of the first graph; INT64_MAX = none */
	int64_t back_from_ns, back_to_ns; /* from the first to the last graph of its backward pass; from > to: none */
};

struct compiled_calls {
	const struct profile *p;
	const struct step_time *w;
	uint8_t *part;           /* by name: enum compiled_part */
	uint32_t *call;          /* by span: place in v of the call that it is in; ROW_NONE */
	uint32_t *frame;         /* by span: the innermost compiled frame that it is or is in; ROW_NONE */
	uint8_t *in_graph;       /* by span: it is or is in a graph */
	uint8_t *is_break;       /* by span */
	uint8_t *backward;       /* by track: graphs of the backward pass run there */
	struct compiled_call *v;
	uint32_t n, cap;
	bool has_frames, entries;/* the input has ranges of compiled frames; of entries */

	uint64_t broken;         /* calls in the window that are broken and show their graphs */
	struct intervals between;/* when the host is in these calls and outside of their graphs, from the first graph on */
	struct intervals back;   /* the same in the backward pass: from its first to its last graph */
	struct intervals unknown;/* broken calls that do not show their graphs */
};

/* Why a detector is not applicable where unknown is not empty. */
extern const char compiled_no_graphs_why[];
/* The same where compiled_may_be_broken. */
extern const char compiled_no_frames_why[];

/* NULL where the input has no compiled frames. Needs PASS_NEST and PASS_CORRELATE; O(ranges log ranges). Free with compiled_calls_free. */
struct compiled_calls *compiled_calls_new(const struct profile *p, const struct step_time *w);
void compiled_calls_free(struct compiled_calls *x);

static inline uint8_t compiled_part_of(const struct compiled_calls *x, uint32_t span)
{
	return x->p->span.kind[span] == SPAN_GPU_USER ? COMPILED_OTHER : x->part[x->p->span.name[span]];
}

/* The broken call of the window, with graphs, that a range is in; NULL. */
const struct compiled_call *compiled_broken_call(const struct compiled_calls *x, uint32_t span);
/* Whether a range is between the graphs of a broken call, or of the backward pass of one. */
bool compiled_is_eager(const struct compiled_calls *x, uint32_t span);
/* Whether several compiled frames may be of one broken call, which the input does not show. */
bool compiled_may_be_broken(const struct compiled_calls *x);
/* Appends where the break before range `at` is: "model.py(9): torch_dynamo_resume_in_forward_at_12" is told as "forward at model.py(12)", the function and
 * the line at which it was left; else the name of the range. Returns the range whose stack says more; ROW_NONE. */
uint32_t compiled_put_break(const struct compiled_calls *x, uint32_t at, struct buf *out);

#endif
