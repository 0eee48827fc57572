/* PyProf's .dict: a Python dictionary a kernel, one a line. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_DICT_H
#define OPSCOPE_PREDECESSORS_PYPROF_DICT_H

#include "base/buf.h"
#include "predecessors/pyprof/records.h"

/* Appends the line of one kernel. */
void pyprof_dict_put(struct buf *b, const struct pyprof_record *x);

#endif
