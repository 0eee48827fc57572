/* The verdict of a comparison: whether B is slower, by how much, and what that is made of. */
#ifndef OPSCOPE_QUERY_DIFF_VERDICT_H
#define OPSCOPE_QUERY_DIFF_VERDICT_H

#include "query/diff_rows.h"

/* What may have made the difference beside the program. */
struct diff_causes {
	bool stacks;             /* much of it is time without work, and call stacks were recorded, which slow the host */
	bool ranks;              /* much of it is communication of which it is unknown how much is waiting */
	bool slowest[2];         /* a worker of this side alone computes much longer than the others, which the verdict tells */
};

/* Adds the section "verdict", which is read before the table, of the rows by term. Returns the causes of the difference; none where there is no difference. */
struct diff_causes diff_verdict_add(const struct diff *terms, const struct diff_matched *m, struct table *out);

/* Appends a time in a unit that suits it: "12.3 ms", with its sign "+12.3 ms". */
void diff_put_time(double ns, bool sign, struct buf *b);

#endif
