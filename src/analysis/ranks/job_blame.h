/* For whom the ranks of a job waited, and why that rank came late.
 *
 * Of each accepted collective, the last rank made the others wait. All ranks left the group's collective before at one moment; from there on the last rank took longer than the median of
 * the others by its excess. The excess is more computation, more copying, more time in collectives of other groups, or more time in which its GPU did nothing, each against the median of
 * the others; what the collective cost the others is shared among these causes by their excess:
 *   slower   more time for as many kernels       more work   more time for more kernels
 *   copies   data loader, garbage collection, host   the GPU did nothing, and the host was in a data loader, in garbage collection, or elsewhere
 *   passed on   it had waited in a collective of another group: the blame is that of the rank which came last there
 * unknown: the first collective of a group in the recording, and one whose last rank took no longer than the others. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_BLAME_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_BLAME_H

#include "analysis/ranks/job.h"

#define JOB_CAUSES(X)                                                                                              \
	X(SLOWER, "slower device", "its GPU took longer for as many kernels")                                                       \
	X(MORE_WORK, "more work", "its GPU ran more kernels, and longer")                                                            \
	X(COPIES, "copies", "its GPU copied more")                                                                                   \
	X(DATA, "data loader", "its GPU did nothing while the host was in a data loader")                                            \
	X(GC, "garbage collection", "its GPU did nothing while the host collected garbage")                                          \
	X(HOST, "host", "its GPU did nothing: the host had given it nothing to do")                                                  \
	X(UNKNOWN, "unknown", "the recording does not show what it did since it last met the others")

enum job_cause {
#define JOB_CAUSE_ID_(id, name, help) JOB_CAUSE_##id,
	JOB_CAUSES(JOB_CAUSE_ID_)
	JOB_N_CAUSES
};
extern const char *const job_cause_name[JOB_N_CAUSES];

struct job_blame {
	int64_t ns[JOB_N_CAUSES];  /* device time that other ranks waited for this one */
	int64_t total_ns;          /* their sum */
	int64_t passed_ns;         /* what others waited at collectives that this rank came last to because it had waited for another itself */
	uint64_t last;             /* how often it came last */
	uint32_t op;               /* string of its texts: the op of whose collectives most of the waiting is */
	uint32_t steps;            /* steps in which the ranks waited most for this one */
};

/* One for each rank: the caller's (mem_free). O(collectives log collectives). */
struct job_blame *job_blame_find(const struct job *j);
/* Steps in which any rank waited. */
uint32_t job_blame_steps(const struct job *j);

#endif
