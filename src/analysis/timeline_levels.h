/* What the parts of the timeline share. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_LEVELS_H
#define OPSCOPE_ANALYSIS_TIMELINE_LEVELS_H

#include "analysis/timeline.h"

/* The items of one lane at one zoom: entries[first .. first + n - 1], and one behind them that ends the last. */
struct timeline_level {
	uint32_t first, n;
	uint8_t zoom;
};

/* Slices `slice` .. (next entry's) - 1 of a lane: one of 2^zoom ns or more, or shorter ones. */
struct timeline_entry {
	uint32_t slice, longest;   /* counted from the lane's first */
	int64_t busy_ns;
};

/* Fills levels and entries of a timeline that has its lanes. */
void timeline_build_levels(struct timeline *t);

#endif
