/* Findings about how a job's collectives move bytes. */
#ifndef OPSCOPE_QUERY_JOB_ADVICE_LINKS_H
#define OPSCOPE_QUERY_JOB_ADVICE_LINKS_H

#include "analysis/ranks/job.h"
#include "detect/detect.h"

/* A group whose large collectives are far slower than those of groups like it, or than the links of its GPUs; and all-to-alls of unequal parts. `step_ns`: of the mean step; `steps`: of
 * all ranks together. Nothing of collectives whose wait is unknown. O(instances). */
void job_advice_add_links(struct findings *f, const struct job *j, double step_ns, uint64_t steps);

#endif
