/* A hang in words: of the reports about dumps of a flight recorder. */
#ifndef OPSCOPE_REPORT_PARTS_HANG_NOTES_H
#define OPSCOPE_REPORT_PARTS_HANG_NOTES_H

#include "analysis/ranks/job_hang.h"
#include "base/buf.h"
#include "base/table.h"

/* "0-3, 8": the members of that part, or those of them that are to blame. Nothing where there is none. */
void hang_put_ranks(const struct job_hang_row *row, enum job_hang_part part, bool to_blame, struct buf *b);
/* "all_to_all"; of a send or receive "recv 0<-12", by ranks. */
void hang_put_op(const struct job_hang_row *row, struct buf *b);
/* "dp (ranks 0-3)". */
void hang_put_group(const struct rank_hang_group *g, struct buf *b);
/* "rank 10 did not come", "rank 14 is stuck", "ranks 12, 13 wait themselves", "unknown: no dump of rank 3", "unknown: all ranks came". */
void hang_put_why(const struct job_hang *h, const struct job_hang_row *row, struct buf *b);
/* Who is to blame, and what dumps do not tell. */
void hang_put_notes(const struct job *j, const struct job_hang *h, struct table *t);

#endif
