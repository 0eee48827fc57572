/* How a few numbers, or many, lie: mean, deviation, quartiles. As pandas' describe() has them. */
#ifndef OPSCOPE_BASE_SPREAD_H
#define OPSCOPE_BASE_SPREAD_H

#include <stddef.h>

struct spread {
	size_t n;
	double mean;
	double sd;               /* of a sample (n - 1); 0 of one value */
	double min, p25, median, p75, max;
};

/* Sorts v. All are 0 of no value. No value may be NaN. O(n log n). */
struct spread spread_of(double *v, size_t n);

#endif
