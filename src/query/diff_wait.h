/* The waiting of a job's ranks, apart from the transfer, in both sides of a comparison.
 *
 * A collective lasts until the last rank has come, and then the transfer. Where the ranks of a job tell when the last one came (analysis/ranks/job.h), the time of its kernel until then, in which
 * no computation ran, is waiting (DIFF_WAIT), and the rest is transfer (DIFF_COMM). The waiting belongs to the rank that most of it goes back to (job_blame_ranks). Both add up to what the kernel had.
 * Where ranks of the process group are missing, what is left may still be waiting for these. */
#ifndef OPSCOPE_QUERY_DIFF_WAIT_H
#define OPSCOPE_QUERY_DIFF_WAIT_H

#include "analysis/ranks/job.h"
#include "query/diff.h"

/* Tells waiting from transfer in a side of which *j is the job (job_finish was called): rank->input is diff_exposed.input, and rank_call.row is diff_exposed.row. O(collectives log collectives). */
void diff_wait_tell(struct diff_side *s, const struct job *j);

/* What rows see of both sides: waiting is a row of its own where both sides tell it, of a kernel; and a rank has a name where much of a side's waiting is for it. */
struct diff_waits;
struct diff_waits *diff_waits_new(const struct diff_side *a, const struct diff_side *b);
void diff_waits_free(struct diff_waits *w);
/* Part i of side 0 or 1. */
struct diff_part diff_waits_part(const struct diff_waits *w, int side, uint32_t i);

/* The name of the row of a part that is waiting, in `texts`; `shown`: with the short name of the kernel. */
uint32_t diff_wait_name(struct intern *texts, const struct diff_side *s, const struct diff_part *x, enum diff_by by, bool shown);

/* Of which share of the communication waiting is unknown, and why. */
void diff_wait_notes(const struct diff_side *a, const struct diff_side *b, struct table *t);

#endif
