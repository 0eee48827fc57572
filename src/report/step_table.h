/* The table of steps by role, shared by `overview` and `steps`: one row a step. */
#ifndef OPSCOPE_REPORT_STEP_TABLE_H
#define OPSCOPE_REPORT_STEP_TABLE_H

#include "analysis/roles.h"
#include "report/report.h"

/* Roles for these arguments: compat and the range of steps. Free with roles_free. NULL with ERR_DATA when there is no step. */
struct roles *step_roles(const struct profile *p, const struct report_args *args, struct err *e);

/* Adds columns and rows to an empty table, and the note that the roles sum to the step. `all`: also what is before the first and after
 * the last border, with a column that tells such rows apart, and what only `steps` shows. */
void step_table(const struct roles *r, const struct profile *p, bool plugin, bool all, struct table *t);

static inline bool report_is_plugin(const struct report_args *args)
{
	return report_compat_is(args, "tb-plugin");
}

#endif
