#include "analysis/timeline/lttb.h"

#include <math.h>

/* Bucket b of the inner points is [edge(b), edge(b + 1)); the last inner "bucket" holds the last point alone. */
static uint32_t edge(uint32_t n, uint32_t keep, uint32_t b)
{
	return (uint32_t)((double)b * ((double)(n - 2) / (keep - 2))) + 1;
}

uint32_t lttb_select(const int64_t *x, const int64_t *y, uint32_t n, uint32_t keep, uint32_t *out)
{
	if (n <= keep || keep < 3) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = i;
		return n;
	}
	uint32_t kept = 0;
	out[kept++] = 0;
	for (uint32_t b = 0; b + 2 < keep; b++) {
		uint32_t first = edge(n, keep, b), end = edge(n, keep, b + 1);
		uint32_t next_end = b + 3 < keep ? edge(n, keep, b + 2) : n;
		double mean_x = 0, mean_y = 0;
		for (uint32_t i = end; i < next_end; i++) {
			mean_x += (double)(x[i] - x[0]);
			mean_y += (double)y[i];
		}
		mean_x /= next_end - end;
		mean_y /= next_end - end;
		uint32_t a = out[kept - 1], best = first;
		double ax = (double)(x[a] - x[0]), ay = (double)y[a], largest = -1;
		for (uint32_t i = first; i < end; i++) {
			double area = fabs((ax - mean_x) * ((double)y[i] - ay) - (ax - (double)(x[i] - x[0])) * (mean_y - ay));
			if (area > largest) {
				largest = area;
				best = i;
			}
		}
		out[kept++] = best;
	}
	out[kept++] = n - 1;
	return kept;
}
