/* How much two sides of a comparison have in common: whether they are runs of one program, and whether the paths of their ops tell which is which.
 *
 * Compiled regions and graphs do not tell their ops. Where one side alone has some, what is in them, and what the other side has alone, is not known to differ: it counts as common. */
#ifndef OPSCOPE_QUERY_DIFF_MATCHED_H
#define OPSCOPE_QUERY_DIFF_MATCHED_H

#include "query/diff_align.h"

/* Both sides, aligned, with what they have in common. */
struct diff_matched {
	const struct diff_align *align;
	double pct;              /* of the time of computation, on the side where it is less: ops that the other side has, too, by type and pass, and at the same path or about as often */
	bool paths;              /* most of the computation is in ops that are aligned with one: rows can tell paths */
	bool regions[2];         /* the side has compiled regions or graphs */
};

/* *x must outlive the answer. O(parts). */
struct diff_matched diff_matched_of(const struct diff_align *x);

/* Whether an op of this type is a compiled region or a graph, which does not tell its ops. */
bool diff_is_region(struct str type);

/* Percent of a side's time, but for idle time, in compiled regions and graphs. */
double diff_region_pct(const struct diff_side *s);

#endif
