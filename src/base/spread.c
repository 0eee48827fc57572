#include "base/spread.h"

#include "base/mem.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>

/* Ascends with the value: -0.0 comes before 0.0, NaN before or behind all others, by its sign. So few values and many get one order. */
static uint64_t spread_key(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits >> 63 ? ~bits : bits | 1ull << 63; /* of negative numbers the larger bits are the smaller number */
}

static int spread_compare(const void *a, const void *b)
{
	return COMPARE(spread_key(*(const double *)a), spread_key(*(const double *)b));
}

enum { SPREAD_MANY = 1 << 10 }; /* values that are sorted sooner by radix */

static void spread_sort(double *v, size_t n)
{
	if (n < SPREAD_MANY || n >= UINT32_MAX) {
		qsort(v, n, sizeof *v, spread_compare);
		return;
	}
	struct sort_item *item = NEW_ARRAY_RAW(n, struct sort_item);
	double *sorted = NEW_ARRAY_RAW(n, double);
	for (size_t i = 0; i < n; i++)
		item[i] = (struct sort_item){spread_key(v[i]), (uint32_t)i, 0};
	sort_items(item, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = v[item[i].row];
	memcpy(v, sorted, n * sizeof *v);
	mem_free(sorted);
	mem_free(item);
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
	spread_sort(v, n);
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
