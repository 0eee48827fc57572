/* The table of steps by role, shared by `overview` and `steps`: one row a step. */
#ifndef OPSCOPE_REPORT_PARTS_STEP_TABLE_H
#define OPSCOPE_REPORT_PARTS_STEP_TABLE_H

#include "analysis/steps/roles.h"
#include "query/report.h"

/* The roles of the steps that args choose. Free with roles_free. NULL and ERR_DATA when args choose no step. */
struct roles *step_roles(const struct profile *p, const struct steps *s, const struct roles_rules *rules, const struct report_args *args, struct err *e);

/* Adds columns and rows to an empty table, and notes. `all`: also what is before the first and after the last border, with a column that tells such rows apart,
 * and what only `steps` shows. */
void step_table(const struct roles *r, const struct profile *p, bool all, struct table *t);

/* The note that the roles sum to the steps, `why` (": ...") behind it where they do not; and that of steps which were not recorded to their ends, also where
 * their rows are not shown. */
void step_table_note_sum(const struct roles *r, const char *why, struct table *t);
void step_table_note_cut(const struct steps *s, struct table *t);

#endif
