/* Framework ops in order of time with the ops around them and beside them: for patterns of ops that follow each other. */
#ifndef OPSCOPE_DETECT_PARTS_OP_SIBLINGS_H
#define OPSCOPE_DETECT_PARTS_OP_SIBLINGS_H

#include "base/mem.h"
#include "store/profile.h"

/* By span; ROW_NONE for what is no op. Siblings have the same nearest op around them, or none and the same thread; annotations and Python
 * frames do not come between. */
struct op_siblings {
	uint32_t *before;        /* the sibling before; ROW_NONE = it is the first */
	uint32_t *last_child;    /* its last child; ROW_NONE = none */
};

/* Needs PASS_NEST. O(spans). */
void op_siblings_init(struct op_siblings *s, const struct profile *p);
void op_siblings_release(struct op_siblings *s);

/* The last op inside an op, down to one without ops inside. */
uint32_t op_last_leaf(const struct op_siblings *s, uint32_t span);

#endif
