/* Largest-Triangle-Three-Buckets (Steinarsson 2013): which points of a curve to keep so that it looks the same.
 * The first and the last point stay; the others are cut into keep - 2 buckets of equal count, and of each the point stays
 * that makes the largest triangle with the point kept before and the mean of the next bucket. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_LTTB_H
#define OPSCOPE_ANALYSIS_TIMELINE_LTTB_H

#include <stdint.h>

/* Chooses min(n, keep) of the n points (x ascending) and writes their indices, ascending, to out. Returns how many.
 * keep >= 3. O(n). */
uint32_t lttb_select(const int64_t *x, const int64_t *y, uint32_t n, uint32_t keep, uint32_t *out);

#endif
