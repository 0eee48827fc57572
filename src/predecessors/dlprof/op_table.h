/* What DLProf's tables of ops share. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_OP_TABLE_H
#define OPSCOPE_PREDECESSORS_DLPROF_OP_TABLE_H

#include "predecessors/dlprof/hints.h"
#include "predecessors/dlprof/op_names.h"
#include "query/op_sums.h"

/* How DLProf counts ops and kernels. */
extern const struct op_rules dlprof_op_rules;

/* Adds what applies of enum dlprof_hint as notes to one of DLProf's tables. */
void dlprof_table_hints(struct table *t, const struct profile *p, const struct window *w, unsigned which);
/* DLProf's 16 columns of time; returns the index of the first. And their cells. */
unsigned dlprof_time_columns(struct table *t);
void dlprof_put_times(struct table *t, unsigned first, const struct op_sum *s);

#endif
