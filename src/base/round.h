/* Rounding as the predecessors' Python did it: half to even, on the exact value. */
#ifndef OPSCOPE_BASE_ROUND_H
#define OPSCOPE_BASE_ROUND_H

#include <stdint.h>

/* Nanoseconds to whole microseconds. Exact: no double is involved. */
int64_t round_us(int64_t ns);

/* round(x, digits) of Python: the decimal nearest to the double's exact value, as a double. digits 0..15. */
double round_digits(double x, int digits);

/* Nearest integer, halves to even; 0 for NaN and infinities. */
int64_t round_even(double x);

#endif
