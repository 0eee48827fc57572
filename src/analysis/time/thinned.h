/* Whether most events were taken out of a recording after it was made, as is done to have small files: its gaps are then no gaps of the run.
 *
 * A profiler numbers ops (External id) and API calls (correlation id) one by one. It writes nearly all ops, so their numbers mostly go up
 * by 1; of API calls it leaves some out, and theirs go up by 1 to 12. Where they mostly go up by several for ops and by
 * dozens for calls, something has taken the others out. */
#ifndef OPSCOPE_ANALYSIS_TIME_THINNED_H
#define OPSCOPE_ANALYSIS_TIME_THINNED_H

#include "store/profile.h"

struct thinned {
	uint64_t ops, calls;     /* the median by which the number goes up; 0 = too few to tell, or (calls) not asked: ops are not rare */
};

/* O(n) of the ranges. */
struct thinned thinned_of(const struct profile *p);
/* By the rule above; of recordings with few ops or calls, false. */
bool thinned_is(const struct thinned *t);

#endif
