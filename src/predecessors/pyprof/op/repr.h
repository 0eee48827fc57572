/* Values as Python's repr() writes them, which is how a .dict has them. Bytes that are no UTF-8 become U+FFFD. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_OP_REPR_H
#define OPSCOPE_PREDECESSORS_PYPROF_OP_REPR_H

#include "base/buf.h"

/* In single quotes; in double ones when it holds only single ones. */
void pyprof_put_repr(struct buf *out, struct str s);
void pyprof_put_repr_list(struct buf *out, const struct str *v, unsigned n);
/* "(1, 2, 3)" */
void pyprof_put_repr_ints(struct buf *out, const int64_t *v, unsigned n, char open, char close);

#endif
