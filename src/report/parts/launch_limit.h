/* Columns that say how many blocks of a launch an SM holds, and what limits them (gpu/occupancy.h). */
#ifndef OPSCOPE_REPORT_PARTS_LAUNCH_LIMIT_H
#define OPSCOPE_REPORT_PARTS_LAUNCH_LIMIT_H

#include "query/section.h"
#include "store/profile.h"

enum { LAUNCH_LIMIT_PCT, LAUNCH_LIMIT_BLOCKS, LAUNCH_LIMIT_BY, LAUNCH_LIMIT_COLUMNS };
/* In a list of columns, from number `first`; `groupings` is .by of each. */
#define LAUNCH_LIMIT_COLUMN_LIST(first, groupings)                                                                                                    \
	[(first) + LAUNCH_LIMIT_PCT] = {COLUMN(PERCENT, "theoretical_occupancy_pct", "Theor. occ. %", "warps of an SM that its blocks can hold at most, by registers, "     \
	                                       "shared memory and block size; empty = the launch or the GPU does not tell"), .by = (groupings)},      \
	[(first) + LAUNCH_LIMIT_BLOCKS] = {COLUMN(COUNT, "blocks_fit_per_sm", "Blocks fit", "blocks of it that an SM can hold at a time", .flags = COLUMN_MINOR), \
	                                   .by = (groupings)},                                                                                       \
	[(first) + LAUNCH_LIMIT_BY] = {COLUMN(TEXT, "limited_by", "Limited by", "what has no room for a further block: registers; shared memory; block size: a block's "   \
	                                      "warps do not fit a second, third, ... time; blocks: an SM holds no more, however small; none: its warps are all held", .flags = COLUMN_ANSWER), \
	                               .by = (groupings)}

struct occupancy;
enum { LAUNCH_LIMIT_TEXT = 64 };
/* The text of the last column. Returns its length. */
size_t launch_limit_text(const struct occupancy *o, char text[LAUNCH_LIMIT_TEXT]);

/* Sets them in the row that was begun last, for a row of p->launch. */
void launch_limit_put(const struct profile *p, uint32_t launch, struct table *t, unsigned first);

/* Whether two rows of p->launch have the same values in these columns. */
bool launch_limit_same(const struct profile *p, uint32_t a, uint32_t b);

#endif
