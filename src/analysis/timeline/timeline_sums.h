/* What a window of the timeline holds: totals by name of some tracks, and how busy each device was over time. Times outside the
 * window are cut off. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_SUMS_H
#define OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_SUMS_H

#include "analysis/timeline/timeline.h"

struct timeline_sum {
	uint32_t name;       /* string */
	uint8_t kind;        /* enum gpu_kind if device, else enum span_kind */
	bool device;
	uint64_t count;      /* slices that overlap the window or begin in it */
	int64_t total_ns;    /* of them, within the window; ranges within ranges count for themselves */
	int64_t self_ns;     /* the same without the ranges within them that are counted, too */
};

/* By name and kind of the tracks with take[track], in the order in which they are first met. Returns how many; the array is the
 * caller's (mem_free). O(slices in the window x depth). */
uint32_t timeline_sums(const struct timeline *t, const uint8_t *take, int64_t from_ns, int64_t to_ns, struct timeline_sum **out);

/* One device over `points` pieces of the window, which are as long as each other to the nanosecond. As analysis/time/gpu_metrics.h defines
 * them: kernels, union over streams, by length of the piece; blocks per SM of the kernels that run, at most 1. NaN = unknown: kernels whose blocks
 * are not known were more than half of the kernel time there. */
struct timeline_use {
	int32_t device;
	double *utilization, *sm_efficiency;
};

/* One for each device with work in the trace, in order of ordinal; a stream's device is that of its first piece of work. from_ns < to_ns,
 * points > 0. Returns how many; to be released. O(device work in the window x lanes of the device). */
uint32_t timeline_use(const struct timeline *t, int64_t from_ns, int64_t to_ns, uint32_t points, struct timeline_use **out);
void timeline_use_release(struct timeline_use *u, uint32_t n);

#endif
