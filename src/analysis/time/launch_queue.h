/* What waits on each stream of a GPU: work whose launch the host has begun, and which the device has not. The length of a queue changes when a call that
 * launches begins (one more) and when the first piece of work of this call on this stream begins (one less): a graph of many pieces is one entry of each
 * stream on which it works. Of several changes at a time, launches come first.
 *
 * The length is that which HolisticTraceAnalysis calls queue length; it counts each piece of a graph, and calls of some names alone. Needs PASS_CORRELATE. */
#ifndef OPSCOPE_ANALYSIS_TIME_LAUNCH_QUEUE_H
#define OPSCOPE_ANALYSIS_TIME_LAUNCH_QUEUE_H

#include "store/profile.h"

/* The most that wait on a CUDA stream: a call that launches one more returns when another one has begun. Not documented; the longest queues of recordings of
 * V100, A100 and T4 stay at this length for as long as such calls take. */
enum { LAUNCH_QUEUE_FULL = 1022 };

struct queue_change {
	int64_t time_ns;
	uint32_t gpu;      /* row of gpu_op: the work that was launched, or began */
	uint32_t length;   /* from this moment on */
	bool launched;     /* false: began */
};

struct launch_queues {
	struct queue_change *v; /* by track of the work, then time */
	uint32_t n;
	uint32_t unknown;  /* pieces of work whose call was not recorded: they are in no queue */
	uint32_t early;    /* the same that began before their call, which the clocks cannot mean */
};

/* O(n log n) in time, O(n) in memory. *out is for launch_queues_release to free. */
void launch_queues_find(const struct profile *p, struct launch_queues *out);
void launch_queues_release(struct launch_queues *q);

/* The changes of one stream: from `at`, the index of its first, to the returned index, that of the next stream's first or n. */
uint32_t launch_queue_end(const struct launch_queues *q, const struct profile *p, uint32_t at);

/* Whether a stream with this work has the limit LAUNCH_QUEUE_FULL: its call is CUDA's. */
bool launch_queue_has_limit(const struct profile *p, uint32_t gpu);

#endif
