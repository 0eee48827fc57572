/* Where a job hangs, by the dumps of its ranks' flight recorders: at which collectives ranks wait, who has not come, and whose fault it is.
 *
 * A rank runs its calls in the order in which it made them, so that the first one that is pending is where it hangs; later ones only wait behind it. Groups are those of the same
 * description and members, in the order of their names. Of the members of a collective at which some rank hangs,
 *   waiting     hang at it
 *   missing     have not called it: the last call of theirs in the group comes before it
 *   done        have completed it
 *   elsewhere   have called it, and hang at a call that they made before
 * A rank is to blame that is missing and has nothing pending: its host has stopped, or is elsewhere in the program. So is one that does not complete a collective which ends on all
 * ranks at one moment (op/comm_kind.h) and is done on another rank: its GPU, or the thread that watches it, is stuck. A missing rank that waits for others itself is not. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_HANG_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_HANG_H

#include "analysis/ranks/job.h"
#include "analysis/ranks/rank_hang.h"

enum job_hang_part { JOB_HANG_WAITING, JOB_HANG_MISSING, JOB_HANG_DONE, JOB_HANG_ELSEWHERE, JOB_HANG_NO_DUMP, JOB_HANG_NOT_TOLD, JOB_HANG_PARTS };

struct job_hang_member {
	int64_t rank;            /* number */
	enum job_hang_part part;
	bool to_blame;           /* missing, or waiting for what is done on others, as above */
};

/* A collective, or a send and its receive, at which at least one rank hangs. */
struct job_hang_row {
	const struct rank_hang_group *group; /* of the first rank that waits */
	const struct rank_hang_call *call;   /* its call */
	int64_t caller;                      /* this rank's number */
	struct job_hang_member *member;      /* in order of rank; of a send or receive the two */
	uint32_t n;
	uint32_t started;                    /* of those that wait: on how many it has begun, as far as was recorded */
	int64_t since_ns;                    /* the first of these calls */
	int64_t other;                       /* a rank that called another kind with this number, -1 = none */
	struct str other_op;
	bool blames;                         /* a member is to blame */
};

struct job_hang_blame {
	int64_t rank;
	bool is_stuck;           /* it does not complete what is done on others; else it did not come */
};

struct job_hang {
	struct job_hang_row *row;        /* those that blame first, then by time */
	uint32_t n;
	struct job_hang_blame *blame;    /* by rank */
	uint32_t n_blames;
	uint32_t dumps;                  /* ranks with a dump */
	uint32_t hanging;                /* of these: with a pending call */
	int64_t first_ns;                /* the first pending call of all; 0 = there is none */
	struct arena arena;
};

/* Whether the ranks of the job are dumps. */
bool job_is_hang(const struct job *j);
/* -1, with an error that says that dumps do not answer what was asked. */
int job_hang_refuse(struct err *e);
/* The caller's (job_hang_free); it refers to the job. O(rows x members x log). */
struct job_hang *job_hang_find(const struct job *j);
void job_hang_free(struct job_hang *h);

#endif
