/* Sums that stop at the ends of int64 rather than wrap. */
#ifndef OPSCOPE_BASE_SATURATE_H
#define OPSCOPE_BASE_SATURATE_H

#include <stdbool.h>
#include <stdint.h>

/* *sum += v; false when that does not fit: *sum is then the end that it ran into. */
static inline bool add_saturated(int64_t *sum, int64_t v)
{
	if (!__builtin_add_overflow(*sum, v, sum))
		return true;
	*sum = v < 0 ? INT64_MIN : INT64_MAX;
	return false;
}

#endif
