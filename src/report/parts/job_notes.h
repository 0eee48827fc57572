/* What holds of every number about a job: which ranks are there, and what is known of their clocks. */
#ifndef OPSCOPE_REPORT_PARTS_JOB_NOTES_H
#define OPSCOPE_REPORT_PARTS_JOB_NOTES_H

#include "analysis/ranks/job.h"
#include "base/table.h"

/* Notes, and warnings of what is missing or contradicts. */
void job_put_notes(const struct job *j, struct table *t);
/* Those of the ranks alone, for numbers that need no clocks. */
void job_put_rank_notes(const struct job *j, struct table *t);

#endif
