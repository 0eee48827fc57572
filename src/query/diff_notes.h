/* The notes of a comparison: what makes the two recordings unlike, what the numbers do not tell, and what they are of. */
#ifndef OPSCOPE_QUERY_DIFF_NOTES_H
#define OPSCOPE_QUERY_DIFF_NOTES_H

#include "query/diff_verdict.h"

/* Adds them, of rows by `by`, under the table. */
void diff_notes_add(const struct diff_matched *m, const struct diff_causes *causes, enum diff_by by, struct table *t);

/* Whether fact i is stated on both sides, with other values. */
bool diff_facts_differ(const struct diff_side *a, const struct diff_side *b, unsigned i);
/* Appends those that differ: "GPU X -> Y; ...". */
void diff_put_facts(const struct diff_side *a, const struct diff_side *b, struct buf *out);

#endif
