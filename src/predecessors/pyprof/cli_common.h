/* What pyprof-parse and pyprof-prof share: --compat and output in pieces. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_CLI_COMMON_H
#define OPSCOPE_PREDECESSORS_PYPROF_CLI_COMMON_H

#include "base/buf.h"
#include "predecessors/pyprof/records.h"

struct pyprof_compat {
	const char *name;
	enum pyprof_record_rules rules;
};
/* The choice of this name among `list`; ends the program with EXIT_USAGE when there is none. */
enum pyprof_record_rules pyprof_compat_of(const char *command, const char *name, const struct pyprof_compat *list, unsigned n);

/* Says on stderr what a user of PyProf could mistake: an input that PyProf never read, kernels that are left out. */
void pyprof_warn(const struct profile *p, const struct pyprof_records *r);

/* Writes what has gathered in *b once it is long, or `all` of it, to standard output. -1 when no one reads any more, which is no
 * error, or it cannot be written, which is printed; *status is the exit status then. */
int pyprof_flush(struct buf *b, bool all, int *status);

#endif
