/* The device work of chosen ranks of a job on one clock, as a profile that the timeline (analysis/timeline/timeline.h) draws: a process for each rank, a thread for
 * each of its streams. Nothing else of the recordings is kept: some 120 bytes for each kernel and copy. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_LINES_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_LINES_H

#include "analysis/ranks/job.h"
#include "analysis/timeline/timeline.h"

struct job_lines;

/* `most`: kernels and copies that are kept, over all ranks. */
struct job_lines *job_lines_new(uint32_t most);
void job_lines_free(struct job_lines *l);
/* The device work of p, of which the ranks job->rank[first ...] were made. */
void job_lines_add(struct job_lines *l, const struct profile *p, const struct job *j, uint32_t first);
/* After job_finish of that job, which must live as long as the lines. ERR_LIMIT: there was more device work than `most`. */
int job_lines_finish(struct job_lines *l, const struct job *j, struct err *e);

/* Of finished lines. */
const struct timeline *job_lines_timeline(const struct job_lines *l);
/* Row of the timeline's gpu_op that is a part of a collective; ROW_NONE = its rank was not chosen. */
uint32_t job_lines_row(const struct job_lines *l, const struct job_part *part);

#endif
