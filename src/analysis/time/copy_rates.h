/* The rate of copies and sets of memory over time: the sum of bytes / duration of those of one kind that run at a time. */
#ifndef OPSCOPE_ANALYSIS_TIME_COPY_RATES_H
#define OPSCOPE_ANALYSIS_TIME_COPY_RATES_H

#include "store/profile.h"

/* A begin or an end, and what holds from then on for all of the same device, kind (copy or set) and direction. */
struct copy_rate {
	int64_t time_ns;
	uint32_t gpu;       /* row of gpu_op: what began or ended */
	uint32_t running;
	double gbs;         /* 10^9 bytes a second */
};

struct copy_rates {
	struct copy_rate *v; /* by time; of equal times ends come first */
	uint32_t n;
	uint32_t left_out;   /* copies and sets that state no bytes, or took no time */
};

/* Of the copies and sets for which wanted[row of gpu_op] is not 0; NULL = all. *out is for copy_rates_release to free. O(n). */
void copy_rates_find(const struct profile *p, const uint8_t *wanted, struct copy_rates *out);
void copy_rates_release(struct copy_rates *r);

/* "HtoD" of the name of a copy in any input's spelling, at one address for each direction; "" = not told. */
const char *copy_direction(struct str name);

#endif
