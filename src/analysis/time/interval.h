/* Sets of time as sorted, disjoint half-open ranges [start, end), int64 ns: union, intersection, difference, length.
 * Every busy, idle and exposed figure rests on these. */
#ifndef OPSCOPE_ANALYSIS_TIME_INTERVAL_H
#define OPSCOPE_ANALYSIS_TIME_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

struct interval {
	int64_t start, end;
};

struct intervals {
	struct interval *v;
	size_t n, cap;
};

/* Adds a range, in any order; empty and negative ranges are ignored. One that begins within the last one added is
 * merged into it, so that nested events take no memory. Call intervals_normalise when done. */
void intervals_add(struct intervals *s, int64_t start, int64_t end);
/* Sorts and merges overlapping or touching ranges. O(n log n), O(n) when already sorted. */
void intervals_normalise(struct intervals *s);
void intervals_release(struct intervals *s);

/* The following want normalised sets and give normalised sets. *out must be empty ({0}) or is replaced. */
void intervals_union(const struct intervals *a, const struct intervals *b, struct intervals *out);
void intervals_intersect(const struct intervals *a, const struct intervals *b, struct intervals *out);
void intervals_subtract(const struct intervals *a, const struct intervals *b, struct intervals *out); /* a - b */
int64_t intervals_length(const struct intervals *s);
/* Length of the part inside [start, end); O(log n + hits). */
int64_t intervals_length_within(const struct intervals *s, int64_t start, int64_t end);

#endif
