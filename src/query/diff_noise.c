#include "query/diff_noise.h"

#include <math.h>

/* The normal distribution exceeds these with probability 0.025 and 0.2. */
static const double NORMAL_975 = 1.959964, NORMAL_80 = 0.841621;
enum { DIFF_NOISE_FEWEST = 2 };

double diff_noise_worth(unsigned n, double r)
{
	double worth = r > 0 ? n * (1 - r) / (1 + r) : n;
	return worth < 2 ? 2 : worth;
}

/* Cornish and Fisher's expansion about the normal quantile (Abramowitz and Stegun 26.7.5), which is exact to 0.3 % from 4 degrees of freedom on; between exact values below. */
double diff_noise_t975(double df)
{
	static const double exact[] = {12.7062, 12.7062, 4.30265, 3.18245};
	if (df < 4) {
		int whole = df < 1 ? 1 : (int)df;
		double next = whole < 3 ? exact[whole + 1] : 2.77645;
		return exact[whole] + (next - exact[whole]) * (df < 1 ? 0 : df - whole);
	}
	double z = NORMAL_975, z2 = z * z;
	double g1 = (z2 + 1) * z / 4, g2 = ((5 * z2 + 16) * z2 + 3) * z / 96, g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384;
	return z + g1 / df + g2 / (df * df) + g3 / (df * df * df);
}

/* Mean, variance of the mean, and its degrees of freedom. */
struct diff_noise_mean {
	double mean, variance, df;
};

static struct diff_noise_mean diff_noise_mean_of(const int64_t *v, unsigned n)
{
	double sum = 0, square = 0, with_next = 0;
	for (unsigned i = 0; i < n; i++)
		sum += (double)v[i] / n;
	for (unsigned i = 0; i < n; i++) {
		double x = (double)v[i] - sum;
		square += x * x;
		with_next += i + 1 < n ? x * ((double)v[i + 1] - sum) : 0;
	}
	double worth = diff_noise_worth(n, square > 0 ? with_next / square : 0);
	return (struct diff_noise_mean){sum, square / (n - 1) / worth, worth - 1};
}

double diff_noise_error(const int64_t *v, unsigned n)
{
	return n < DIFF_NOISE_FEWEST ? 0 : sqrt(diff_noise_mean_of(v, n).variance);
}

struct diff_noise diff_noise_of(const int64_t *a, unsigned na, const int64_t *b, unsigned nb)
{
	if (na < DIFF_NOISE_FEWEST || nb < DIFF_NOISE_FEWEST)
		return (struct diff_noise){0};
	struct diff_noise_mean x = diff_noise_mean_of(a, na), y = diff_noise_mean_of(b, nb);
	double variance = x.variance + y.variance;
	if (variance <= 0)
		return (struct diff_noise){.known = true};
	double df = variance * variance / (x.variance * x.variance / x.df + y.variance * y.variance / y.df);
	double t = diff_noise_t975(df), error = sqrt(variance);
	return (struct diff_noise){true, t * error, (t + NORMAL_80) * error};
}
