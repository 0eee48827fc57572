/* What gate.c and gate_table.c share: the numbers of accepted runs. */
#ifndef OPSCOPE_QUERY_GATE_VALUES_H
#define OPSCOPE_QUERY_GATE_VALUES_H

#include "query/gate.h"

/* How the name of an op's metric begins. */
#define GATE_OP STR("op:")

/* The first run that counts: the first anchor. Runs before it were of another time, which `learn --anchor` ended. */
unsigned gate_first_run(const struct gate_block *b);
/* The values that the last runs, or the anchors, have of a metric, in order of time, into v[0 .. b->n_runs). *error_square: the mean of their squared standard errors. Returns how many
 * there are. */
unsigned gate_values_of(const struct gate_block *b, unsigned metric, bool anchor, double *v, double *error_square);
/* Exposed communication and idle time: a change counts in percent of the step. */
bool gate_is_part_of_step(const struct gate_block *b, unsigned metric);

#endif
