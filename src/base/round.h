/* Rounding as the predecessors' Python did it: half to even, on the exact value; and shares. */
#ifndef OPSCOPE_BASE_ROUND_H
#define OPSCOPE_BASE_ROUND_H

#include <math.h>
#include <stdint.h>

/* Nanoseconds to whole microseconds. Exact: no double is involved. */
int64_t round_us(int64_t ns);

/* round(x, digits) of Python: the decimal nearest to the double's exact value, as a double. digits 0..15. */
double round_digits(double x, int digits);

/* Nearest integer, halves to even; 0 for NaN and infinities. */
int64_t round_even(double x);

/* What percentage of `whole` is `part`; NaN, which tables show as unknown, of a whole that is 0 or less. */
static inline double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : (double)NAN;
}

/* The same for predecessors, who said 0 then, and for sentences. */
static inline double percent_or_zero(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

#endif
