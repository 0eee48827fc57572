/* Verdicts of a gate for the machines that run it: JUnit's XML, and what GitHub reads. */
#ifndef OPSCOPE_CLI_GATE_CI_H
#define OPSCOPE_CLI_GATE_CI_H

#include "query/gate.h"

/* One test case for each judgement: failed, skipped where undecided. Replaces the file whole. */
int gate_ci_write_junit(const char *path, const struct gate_block *b, const struct gate_judgements *j, struct str run, struct err *e);
/* Prints a line ::error or ::warning for each judgement that does not pass, and appends the tables to the file that $GITHUB_STEP_SUMMARY names, if any. */
int gate_ci_tell_github(const struct gate_block *b, const struct gate_judgements *j, const struct table *t, struct err *e);

/* The same where nothing could be judged, for the reason `why`: a test case that was skipped, and a line ::warning. */
int gate_ci_write_undecided(const char *path, struct str run, const char *why, struct err *e);
void gate_ci_warn_github(const char *why);

#endif
