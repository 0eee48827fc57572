/* Whether two sets of step times differ by more than they scatter. */
#ifndef OPSCOPE_QUERY_DIFF_NOISE_H
#define OPSCOPE_QUERY_DIFF_NOISE_H

#include <stdbool.h>
#include <stdint.h>

struct diff_noise {
	bool known;              /* both sides have at least 2 steps */
	double half_ns;          /* half the 95 % interval of the difference of the means */
	double least_ns;         /* the least difference that would be found in 80 of 100 such pairs of recordings */
};

/* a[na], b[nb]: lengths of steps in order of time, ns. */
struct diff_noise diff_noise_of(const int64_t *a, unsigned na, const int64_t *b, unsigned nb);

/* The standard error of the mean of v[n], by the same count of independent steps; 0 = unknown, with fewer than 2. */
double diff_noise_error(const int64_t *v, unsigned n);

/* How many independent values n values are worth whose correlation with the one before is r: n (1 - r) / (1 + r), 2 .. n. */
double diff_noise_worth(unsigned n, double r);
/* The value that Student's t with `df` degrees of freedom exceeds with probability 0.025. */
double diff_noise_t975(double df);

#endif
