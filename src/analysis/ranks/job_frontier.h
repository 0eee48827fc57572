/* What each phase adds to the steps of ranks that work together, without comparing their clocks.
 *
 * By its own clock, rank r has spent C(r, s, k) from the beginning of its first step up to the end of phase k of step s: from that beginning to the beginning of s, and in s its own times in
 * the phases 0 to k. The frontier F(s, k) is the most that a rank has spent by then, max over r of C(r, s, k), and not less than before. The phase adds F less the frontier before it. What phases
 * add is never negative, and adds up to the last frontier exactly: the longest time that a rank took for these steps (after Yoon, Chen, Kallioniemi: StageFrontier, arXiv 2606.06751, of one
 * step). A rank that is slow in one phase raises the frontier there, and the others' waiting for it in a later phase, or in the next step, raises it no further. Sums and maxima of phases by
 * themselves count that delay twice.
 *
 * Time goes on over steps with numbers that follow each other; behind a number that is missing it begins anew. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_FRONTIER_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_FRONTIER_H

#include "analysis/ranks/job.h"

/* The phases in order: first the time between the end of one step and the beginning of the next, then those of the step. */
enum { JOB_FRONTIER_BETWEEN, JOB_FRONTIER_PHASES = RANK_N_PHASES + 1 };

/* Of one phase; sums over the steps. */
struct job_frontier_phase {
	int64_t added_ns;        /* by which it raises the frontier */
	int64_t beyond_ns;       /* of that, what the median rank's own time does not explain: added - median, at least 0 in each step */
	int64_t own_ns;          /* over the ranks, too: what they spent */
	uint32_t first, first_steps; /* the rank that is at the frontier in most steps (index into job->rank), and in how many */
	uint32_t second, second_steps; /* likewise the one next behind it; UINT32_MAX = there is one rank */
	int64_t lead_ns;         /* the frontier less the rank next behind it */
	uint32_t longest;        /* the rank with most own time */
	int64_t longest_ns;
};

struct job_frontier {
	const uint32_t *rank;    /* the ranks that are compared; borrowed */
	uint32_t n;
	bool is_merged;          /* most time is of no known phase, so that their order means nothing: there are data loading, work (RANK_PHASE_OTHER) and communication alone */
	double unknown_pct;      /* of the time of the ranks' steps, what is of no known phase */
	uint32_t steps;          /* how many steps all of them have */
	uint32_t other_steps;    /* of the rank with most, those that some rank does not have */
	int64_t total_ns;        /* the last frontier, summed where time began anew: what all phases add */
	struct job_frontier_phase phase[JOB_FRONTIER_PHASES];
};

/* "between steps", "data loading", ... */
const char *job_frontier_phase_name(const struct job_frontier *f, unsigned phase);

/* Of these ranks of the job, and the steps with numbers first..last that all of them have. O(ranks x steps x log steps). */
void job_frontier_find(const struct job *j, const uint32_t *rank, uint32_t n, int64_t first, int64_t last, struct job_frontier *out);

#endif
