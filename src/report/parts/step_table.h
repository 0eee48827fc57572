/* The table of steps by role, shared by `overview` and `steps`: one row for each step. */
#ifndef OPSCOPE_REPORT_PARTS_STEP_TABLE_H
#define OPSCOPE_REPORT_PARTS_STEP_TABLE_H

#include "analysis/steps/roles.h"
#include "query/report.h"

/* The roles of the steps that args choose. Free with roles_free. NULL and ERR_DATA when args choose no step. */
struct roles *step_roles(const struct profile *p, const struct steps *s, const struct roles_rules *rules, const struct report_args *args, struct err *e);

/* The columns of `steps`; and those of the section of overview, in two lists: without the columns that say whether a step is whole and where steps come from. */
extern const struct section step_table_section, step_table_number, step_table_times;

/* Adds columns, rows and notes to an empty table. `all`: as `steps` has them, also what is before the first and after the last border. */
void step_table(const struct roles *r, const struct profile *p, const struct report_args *args, bool all, struct table *t);

/* The note that the roles sum to the steps, `why` (": ...") behind it where they do not; and that of steps which were not recorded to their ends, also where
 * their rows are not shown. */
void step_table_note_sum(const struct roles *r, const char *why, struct table *t);
void step_table_note_cut(const struct steps *s, struct table *t);

/* A sentence, with a blank before it, that no range of a data loader lies in the time of *p, so that a role of 0 ns says nothing of loading; "" where one does.
 * O(spans). */
const char *step_table_without_loader(const struct profile *p);

/* The warning that the first step begins after its range, with what was left out and why. None where it begins with it. */
void step_table_note_begin(const struct steps *s, struct table *t);

#endif
