/* Who owns a block of memory: the op, the line of Python and the module in which it was allocated. Of a trace, they are those of the op around the allocation; a memory snapshot has no
 * ops, and the stack of each allocation tells. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_OWNERS_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_OWNERS_H

#include "store/profile.h"

/* Ids of texts (memory_owner_text); 0 = not known. */
struct memory_owner {
	uint32_t op;     /* the innermost op, with the one around it where it is aten::empty or its kin. By frames of C++ (at::_ops::add_Tensor): "aten::add_Tensor", of
	                  * which the overload is a part, and the innermost that is no aten::empty; in the backward pass with the node of autograd: "aten::mm (MmBackward0)" */
	uint32_t line;   /* the innermost frame of the user's own code */
	uint32_t module; /* the layer; by a stack, which does not name modules, the calls of forward() around it that are not torch's, outermost first: "net.py(245) > net.py(54)" */
};

struct memory_owners;

/* Needs PASS_NEST and PASS_CORRELATE. O(ranges + length of the recorded stacks). */
struct memory_owners *memory_owners_new(const struct profile *p);
void memory_owners_free(struct memory_owners *o);

/* Of the allocation in row `i` of p->memory. */
struct memory_owner memory_owner_of(struct memory_owners *o, uint32_t i);
/* Of what has the stack in argument set `set`. */
struct memory_owner memory_owner_by_stack(struct memory_owners *o, uint32_t set);

struct str memory_owner_text(const struct memory_owners *o, uint32_t id);

/* Whether the input has stacks, and layers or such calls: else no line, no module is known. */
bool memory_owners_have_lines(const struct memory_owners *o);
bool memory_owners_have_modules(const struct memory_owners *o);

#endif
