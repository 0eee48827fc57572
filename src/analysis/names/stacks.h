/* Python stacks: which frames stood around an op when it was called.
 *
 * A stack comes from the op's recorded "Call stack", or from the python_function ranges around it. An op of the backward
 * pass has the stack of the forward op that it belongs to (torch/autograd/profiler_util.py): its own would only say
 * that backward() was called. Frames inside the node of the backward pass (a torch.autograd.Function's backward in Python) stand upon
 * that. Where modules are called in there (activation checkpointing runs the forward pass again), what is inside them keeps its own
 * stack: it has nothing to do with the op whose node made it run. Stacks are numbered; 0 is the empty stack, of which nothing is
 * known. */
#ifndef OPSCOPE_ANALYSIS_NAMES_STACKS_H
#define OPSCOPE_ANALYSIS_NAMES_STACKS_H

#include "base/buf.h"
#include "store/profile.h"

struct stacks;

/* Needs PASS_NEST. O(ranges + length of the recorded stacks). Free with stacks_free. */
struct stacks *stacks_new(const struct profile *p);
/* The same with links that the caller has; they are borrowed for the call. */
struct fwdbwd;
struct stacks *stacks_new_linked(const struct profile *p, const struct fwdbwd *links);
/* Recorded "Call stack"s alone, each at the range that has it: no Python frames, none of what is around or of forward ops. Frames that
 * leave_out (NULL = none) tells are not in them. O(ranges + length of the recorded stacks). */
struct stacks *stacks_recorded_new(const struct profile *p, bool (*leave_out)(struct str frame));
void stacks_free(struct stacks *s);

/* The stack of a CPU-side range. */
uint32_t stacks_of(const struct stacks *s, uint32_t span);

/* The stack in an argument set, for rows that are no spans: allocations, for example. */
uint32_t stacks_of_args(const struct stacks *s, uint32_t set);

/* Whether it does not continue the stack of the op around it in time: a node of the backward pass, which has its forward op's, and
 * what is run again inside one. */
bool stacks_restarts(const struct stacks *s, uint32_t span);

/* Appends the frames, innermost first, separated by ';', as the profiler writes "Call stack". */
void stacks_text(const struct stacks *s, uint32_t stack, struct buf *out);

/* Takes the innermost frame off: *frame gets it, *stack becomes the one that it was called from, which has a smaller number. False
 * when the stack is empty. */
bool stacks_pop(const struct stacks *s, uint32_t *stack, struct str *frame);

/* Stacks are 0 .. stacks_count() - 1. */
uint32_t stacks_count(const struct stacks *s);

/* The innermost frame of the user's own code: not of torch, an installed package, the standard library or an interpreter
 * built-in; the empty string when there is none. Lives as long as *s. */
struct str stacks_user_line(const struct stacks *s, uint32_t stack);

/* Whether a frame is of that code. */
bool stacks_is_user_frame(struct str frame);

/* Whether the trace has any. */
bool stacks_any(const struct stacks *s);

/* How many ops took the stack of their forward op. */
uint64_t stacks_from_forward(const struct stacks *s);

#endif
