#include "base/spread.h"

#include "base/sort.h"

#include <math.h>
#include <stdlib.h>

static int spread_compare(const void *a, const void *b)
{
	return COMPARE(*(const double *)a, *(const double *)b);
}

/* Between the two values around the place, in proportion. */
static double spread_quantile(const double *sorted, size_t n, double share)
{
	double at = share * (double)(n - 1);
	size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;
	return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

struct spread spread_of(double *v, size_t n)
{
	struct spread s = {.n = n};
	double sum = 0, squares = 0;
	if (!n)
		return s;
	qsort(v, n, sizeof *v, spread_compare);
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	s.mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	s.sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	s.min = v[0];
	s.max = v[n - 1];
	s.p25 = spread_quantile(v, n, 0.25);
	s.median = spread_quantile(v, n, 0.5);
	s.p75 = spread_quantile(v, n, 0.75);
	return s;
}
