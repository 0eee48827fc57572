#include "query/gate_stats.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- Student's t ---- */

/* The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method. */
static double gate_beta_fraction(double x, double a, double b)
{
	enum { MOST_TERMS = 500 };
	static const double SMALLEST = 1e-300, ENOUGH = 1e-15;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < SMALLEST ? SMALLEST : d);
	double f = d;
	for (int m = 1; m <= MOST_TERMS; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;
		for (int i = 0; i < 2; i++) {
			const double term = i ? odd : even;
			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < SMALLEST ? SMALLEST : d);
			c = fabs(c) < SMALLEST ? SMALLEST : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < ENOUGH)
			break;
	}
	return f;
}

static double gate_beta(double x, double a, double b)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * gate_beta_fraction(x, a, b) / a : 1 - front * gate_beta_fraction(1 - x, b, a) / b;
}

double gate_t_above(double t, double df)
{
	const double both = gate_beta(df / (df + t * t), df / 2, 0.5);
	return t > 0 ? both / 2 : 1 - both / 2;
}

double gate_t_of(double p, double df)
{
	assert(p > 0 && p < 1);
	double low = -1, high = 1;
	while (gate_t_above(high, df) > p && high < 1e300)
		high *= 2;
	while (gate_t_above(low, df) < p && low > -1e300)
		low *= 2;
	for (int i = 0; i < 200; i++) {
		const double middle = low + (high - low) / 2;
		*(gate_t_above(middle, df) > p ? &low : &high) = middle;
	}
	return high;
}

/* ---- sets of runs ---- */

double gate_mean(const double *v, unsigned n)
{
	double sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum += v[i] / n;
	return sum;
}

struct gate_scatter gate_scatter_of(const double *v, unsigned n)
{
	assert(n >= 2);
	double square = 0;
	for (unsigned i = 0; i + 1 < n; i++)
		square += (v[i + 1] - v[i]) * (v[i + 1] - v[i]);
	const double steps = n - 1;
	return (struct gate_scatter){sqrt(square / (2 * steps)), 4 * steps * steps / (6.0 * n - 8)};
}

static int gate_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double gate_middle(const double *v, unsigned n)
{
	assert(n >= 1);
	double *sorted = NEW_ARRAY_RAW(n, double), sum = 0;
	for (unsigned i = 0; i < n; i++)
		sorted[i] = v[i];
	qsort(sorted, n, sizeof *sorted, gate_compare);
	const double first = n / 4.0, last = n - first; /* [first, last) of the axis on which value i has [i, i + 1) */
	for (unsigned i = 0; i < n; i++) {
		const double from = fmax(i, first), to = fmin(i + 1.0, last);
		sum += to > from ? sorted[i] * (to - from) : 0;
	}
	mem_free(sorted);
	return sum / (last - first);
}

void gate_holm(const double *p, unsigned n, double alpha, bool *rejected)
{
	for (unsigned i = 0; i < n; i++)
		rejected[i] = false;
	for (unsigned k = 0; k < n; k++) {
		unsigned best = n;
		for (unsigned i = 0; i < n; i++)
			if (!rejected[i] && (best == n || p[i] < p[best]))
				best = i;
		if (p[best] > alpha / (n - k))
			return;
		rejected[best] = true;
	}
}

double gate_trend(const double *v, unsigned n)
{
	if (n < GATE_TREND_FEWEST)
		return 1;
	if (n > GATE_TREND_MOST) {
		v += n - GATE_TREND_MOST;
		n = GATE_TREND_MOST;
	}
	double s = 0;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = i + 1; k < n; k++)
			s += gate_compare(&v[k], &v[i]);
	const double variance = (double)n * (n - 1) * (2.0 * n + 5) / 18;
	const double z = fabs(s) > 1 ? (fabs(s) - 1) / sqrt(variance) : 0;
	return erfc(z / sqrt(2));
}
