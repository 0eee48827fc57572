/* A run to be compared, as diff and gate take it from the command line. */
#ifndef OPSCOPE_CLI_SIDE_H
#define OPSCOPE_CLI_SIDE_H

#include "cli/cli.h"
#include "query/diff_side.h"

/* The side of what the paths and options choose: one recording, or all ranks of a job, read one after the other. The caller's (diff_side_free). NULL after printing the error; *status gets the
 * exit status. */
struct diff_side *cli_side_read(const struct cli_args *paths, const struct trace_options *o, int *status);

#endif
