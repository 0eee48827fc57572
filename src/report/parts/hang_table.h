/* The table of where a job hangs, by the dumps of its ranks' flight recorders (analysis/ranks/job_hang.h). */
#ifndef OPSCOPE_REPORT_PARTS_HANG_TABLE_H
#define OPSCOPE_REPORT_PARTS_HANG_TABLE_H

#include "analysis/ranks/job_hang.h"
#include "query/report.h"

extern const struct section hang_section;
/* As report.run_job. */
int hang_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e);

#endif
