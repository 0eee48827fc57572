/* The statistics of a gate: whether a run differs from accepted runs by more than these differ from each other. The unit is the run: steps of one run are correlated, and say
 * little of how runs scatter. */
#ifndef OPSCOPE_QUERY_GATE_STATS_H
#define OPSCOPE_QUERY_GATE_STATS_H

#include <stdbool.h>

/* P(T > t) of Student's t with df > 0 degrees of freedom, which need not be whole. By the incomplete beta function: Abramowitz and Stegun 26.7.1 and 26.5.8. */
double gate_t_above(double t, double df);
/* The t that is exceeded with probability p, 0 < p < 1. */
double gate_t_of(double p, double df);

/* How n >= 2 values, in order of time, scatter, and as how many degrees of freedom the estimate counts. From the differences of neighbours (von Neumann's), so that a slow drift of the
 * values is no scatter: sd^2 = sum (x[i+1] - x[i])^2 / (2 (n - 1)). Its degrees of freedom by Satterthwaite: 4 (n - 1)^2 / (6 n - 8). */
struct gate_scatter {
	double sd, df;
};
struct gate_scatter gate_scatter_of(const double *v, unsigned n);

double gate_mean(const double *v, unsigned n);
/* The mean of the middle half, which outliers do not move. Without outliers it needs about a fifth more values than the mean to be as exact. The two values at its ends count by
 * fractions, so that exactly n / 2 values count. */
double gate_middle(const double *v, unsigned n);

/* Holm's step-down procedure: which of n hypotheses with these probabilities are rejected. The probability that any true one is rejected is at most `alpha`. */
void gate_holm(const double *p, unsigned n, double alpha, bool *rejected);

/* Whether n values rise or fall all along: the probability of so marked an order by chance, two-sided, by Mann and Kendall's S in its normal approximation. Ties are not corrected for. 1 below
 * GATE_TREND_FEWEST values; of more than GATE_TREND_MOST the last ones count. */
enum { GATE_TREND_FEWEST = 8, GATE_TREND_MOST = 500 };
double gate_trend(const double *v, unsigned n);

#endif
