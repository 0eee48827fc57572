/* What each phase adds to the steps of ranks that work together. No clocks are compared.
 *
 * C(r, s, k) is the time that rank r, by its own clock, has taken from the beginning of its first step to the end of phase k of step s: the time up to the beginning of step s, and its own
 * times in the phases 0 to k of s. The frontier F(s, k) is the largest C(r, s, k) of all ranks r, and never less than the frontier before it. The phase adds F(s, k) less the frontier before it.
 * So no phase adds less than 0, and the phases of all steps add up exactly to the last frontier, which is the longest time that a rank took for these steps.
 *
 * A rank that is slow in one phase raises the frontier there. The others then wait for it, in a later phase or in the next step, and their waiting does not raise the frontier again. Plain
 * sums and maxima of phases count that delay twice. (The method is StageFrontier's: Yoon, Chen, Kallioniemi, arXiv 2606.06751, who look at one step at a time.)
 *
 * Time goes on over steps whose numbers follow each other; behind a number that is missing it begins anew. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_FRONTIER_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_FRONTIER_H

#include "analysis/ranks/job.h"

/* The phases in order: first the time between the end of one step and the beginning of the next, then those of the step. */
enum { JOB_FRONTIER_BETWEEN, JOB_FRONTIER_PHASES = RANK_N_PHASES + 1 };

/* Of one phase; sums over the steps. */
struct job_frontier_phase {
	int64_t added_ns;        /* by which it raises the frontier */
	int64_t beyond_ns;       /* of that, what the median rank's own time does not explain: added - median, at least 0 in each step */
	int64_t own_ns;          /* what the ranks spent: a sum over the ranks, too */
	uint32_t first, first_steps; /* the rank that is at the frontier in most steps (index into job->rank), and in how many */
	uint32_t second, second_steps; /* likewise the one next behind it; UINT32_MAX = there is one rank */
	int64_t lead_ns;         /* the frontier less the rank next behind it */
	uint32_t longest;        /* the rank with most own time */
	int64_t longest_ns;
};

struct job_frontier {
	const uint32_t *rank;    /* the ranks that are compared; borrowed */
	uint32_t n;
	bool is_merged;          /* most time is of no known phase: the phases are data loading, work (RANK_PHASE_OTHER) and communication */
	double unknown_pct;      /* percent of the time of the ranks' steps */
	uint32_t steps;          /* how many steps all of them have */
	uint32_t other_steps;    /* of the rank with the most steps: how many of its steps some rank does not have */
	int64_t total_ns;        /* the last frontier, summed where time began anew: what all phases add */
	struct job_frontier_phase phase[JOB_FRONTIER_PHASES];
};

/* "between steps", "data loading", ... */
const char *job_frontier_phase_name(const struct job_frontier *f, unsigned phase);

/* Of these ranks of the job, and the steps with numbers first..last that all of them have. O(ranks x steps x log steps). */
void job_frontier_find(const struct job *j, const uint32_t *rank, uint32_t n, int64_t first, int64_t last, struct job_frontier *out);

#endif
