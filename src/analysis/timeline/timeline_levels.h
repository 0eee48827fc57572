/* What the parts of the timeline share. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_LEVELS_H
#define OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_LEVELS_H

#include "analysis/timeline/timeline.h"

/* So many slices of a lane, the last segment fewer: slices k << BITS and on are those of segment lane->first_segment + k. */
enum { TIMELINE_SEGMENT_BITS = 14 };
struct timeline_segment {
	uint32_t first_level;
	uint8_t n_levels;
};

/* A segment's slices as drawn at one zoom: entries[first .. first + n - 1], and one behind them that ends the last. */
struct timeline_level {
	uint32_t first, n;
	uint8_t zoom;
};

/* Slices `slice` .. (next entry's) - 1 of a lane: one of 2^zoom ns or more, or shorter ones. What is drawn stands here, so that drawing
 * reads entries one behind the other instead of slices all over the columns. */
struct timeline_entry {
	int64_t start_ns, busy_ns;
	uint32_t slice, longest;          /* counted from the lane's first */
	uint32_t longest_ns, extent_ns;   /* of the longest; from the start of the first to the end of the last. UINT32_MAX = to be looked up */
};

/* Fills segments, levels and entries of a timeline that has its lanes. */
void timeline_build_levels(struct timeline *t);

#endif
