/* For whom the ranks of a job waited, and why that rank came late.
 *
 * In each accepted collective, the others waited for the last rank. All ranks had left the group's collective before at one moment; from there on the last rank took longer than the
 * median of the others. It computed longer, copied longer, was longer in collectives of other groups, or its GPU did nothing for longer. Each is compared with the median of the others:
 * the difference is the last rank's excess. The others' waiting is shared among these causes in proportion to the excesses:
 *   slower   more time for as many kernels       more work   more time for more kernels
 *   copies   data loader, garbage collection, host   the GPU did nothing, and the host was in a data loader, in garbage collection, or elsewhere
 *   recorded otherwise   as host, of a rank that recorded stacks or memory where most ranks did not: recording makes a host slower
 *   passed on   it had waited in collectives of other groups: what it waited is the blame of the rank that it had waited for longest
 * unknown: collectives of other groups that took longer without a known wait, and where the last rank took no longer than the others. Of the first collective of a group in the
 * recording, what the rank did is counted from its first collective of any group on; how late it came to that one is unknown.
 *
 * The same waiting is shared among the phases of the step in which the last rank spent more than the median of the others since the group's collective before (rank_phases.h).
 * Ranks are compared with those of the group that are of the same pipeline stage (job_peers.h). */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_BLAME_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_BLAME_H

#include "analysis/ranks/job.h"

#define JOB_CAUSES(X)                 \
	X(SLOWER, "slower device")        \
	X(MORE_WORK, "more work")         \
	X(COPIES, "copies")               \
	X(DATA, "data loader")            \
	X(GC, "garbage collection")       \
	X(HOST, "host")                   \
	X(RECORDING, "recorded otherwise") \
	X(UNKNOWN, "unknown")

enum job_cause {
#define JOB_CAUSE_ID_(id, name) JOB_CAUSE_##id,
	JOB_CAUSES(JOB_CAUSE_ID_)
	JOB_N_CAUSES
};
extern const char *const job_cause_name[JOB_N_CAUSES];

struct job_blame {
	int64_t ns[JOB_N_CAUSES];  /* device time that other ranks waited for this one, by cause */
	int64_t total_ns;          /* their sum */
	int64_t phase_ns[RANK_N_SPENT]; /* the same by the phase in which the rank lost the time; of what is missing in their sum the phase is not known */
	int64_t passed_ns;         /* waiting at collectives that this rank came last to because another rank had kept it: in the sums of that rank */
	uint64_t last;             /* how often it came last */
	uint32_t op;               /* of rank->texts: the op of the collective at which the others waited longest for this one */
	uint32_t steps;            /* steps in which the others waited longer because of this one than because of any other */
};

/* One for each rank: the caller's (mem_free). O(collectives log collectives). */
struct job_blame *job_blame_find(const struct job *j);
/* By instance: the rank (index into job->rank) to which most of the waiting there goes. The caller's (mem_free). O(collectives log collectives). */
uint32_t *job_blame_ranks(const struct job *j);
/* The steps of the rank that has most: job_blame.steps are of these. */
uint32_t job_blame_steps(const struct job *j);

#endif
