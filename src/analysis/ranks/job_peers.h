/* Which ranks of a job do the same work, so that their times may be compared: those of one pipeline stage. A job in which no process group is known to be of a pipeline has one set of peers,
 * which is all its ranks.
 *
 * job_groups.h tells which groups are of a pipeline. A rank's stage is its place among the group's members. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_PEERS_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_PEERS_H

#include "analysis/ranks/job.h"

struct job_peers {
	uint32_t *rank;          /* indices into job->rank, by set, then ascending */
	uint32_t *first;         /* of each set, and behind the last: where it begins in `rank` */
	uint32_t n;              /* sets, at least 1 */
	uint32_t stages;         /* of the pipeline; 0 = none is known. Set s is then stage stage[s], or, with UINT32_MAX, the ranks of which no stage is known */
	uint32_t *stage;
};

/* The caller's (job_peers_release). O(ranks log ranks + members of groups). */
void job_peers_find(const struct job *j, struct job_peers *out);
void job_peers_release(struct job_peers *x);
/* Whether a group is of a pipeline. */
bool job_group_is_pipeline(const struct job_group *g);

#endif
