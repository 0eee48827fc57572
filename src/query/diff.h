/* What changed between two recordings of a run: the difference of their steps as a sum of terms, which add up to it.
 *
 * Each side is taken apart (query/diff_side.h), and its parts are put into rows: by term, module, op, kernel or line, or into the tree of modules. Which module and op of A is
 * which of B is found by aligning them (query/diff_align.h); rows that are left over are joined as query/diff_rows.h says.
 * What a row says is in query/diff_label.h, the sentence before the table in query/diff_verdict.h, and what both sides have in common in query/diff_matched.h.
 * All numbers are means per step, and over the GPUs. With n calls of mean time t,
 *   delta = b - a = (nb - na) (ta + tb) / 2  +  (tb - ta) (na + nb) / 2        (by calls, by time of a call: nothing is left over)
 *
 * Whether the steps differ at all: Welch's t of their lengths, with as many independent steps as their correlation with the step before leaves. */
#ifndef OPSCOPE_QUERY_DIFF_H
#define OPSCOPE_QUERY_DIFF_H

#include "query/diff_side.h"

enum diff_by { DIFF_BY_TERM, DIFF_BY_MODULE, DIFF_BY_TREE, DIFF_BY_OP, DIFF_BY_KERNEL, DIFF_BY_LINE, DIFF_BYS };
/* What a user calls it: "term", "module", ... ERR_USAGE for other names, of which the message lists those that there are. */
int diff_by_of(struct str name, enum diff_by *by, struct err *e);

struct diff_ask {
	enum diff_by by;
	bool force;              /* answer although less than DIFF_LEAST_MATCHED percent of the time of computation has a counterpart, or the jobs have other numbers of ranks, here or in all */
};
enum { DIFF_LEAST_MATCHED = 80 };

/* Initialises *out: its rows, the largest difference first, and a section "verdict", which is read before them. The table owns its texts. ERR_DATA, and no
 * table: the two are not of the same work, or of other numbers of ranks (unless forced); one is of GPUs and the other of the host; or rows shall be by lines or modules, and a side does not know them. */
int diff_table(const struct diff_side *a, const struct diff_side *b, const struct diff_ask *ask, struct table *out, struct err *e);

#endif
