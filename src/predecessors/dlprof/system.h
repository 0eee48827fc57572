/* The machine and the software of a run, as DLProf lists them. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_SYSTEM_H
#define OPSCOPE_PREDECESSORS_DLPROF_SYSTEM_H

#include "base/table.h"
#include "query/predecessor.h"

/* What DLProf records of itself. */
extern const struct predecessor_fact dlprof_facts[];

/* Adds rows to a table of name and value. */
void dlprof_system_rows(const struct profile *p, struct table *t);

#endif
