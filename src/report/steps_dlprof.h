/* The table of DLProf's iterations: where each begins and ends, and how busy the GPUs were in it. */
#ifndef OPSCOPE_REPORT_STEPS_DLPROF_H
#define OPSCOPE_REPORT_STEPS_DLPROF_H

#include "report/report.h"

/* Fills an empty table. Needs PASS_NEST and PASS_CORRELATE. ERR_DATA when args->has_steps and there is no such iteration. */
int steps_dlprof(const struct profile *p, const struct report_args *args, struct table *t, struct err *e);

#endif
