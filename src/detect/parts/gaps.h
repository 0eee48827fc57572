/* When a GPU has no work, and what the host did meanwhile. O(n log n).
 *
 * A gap is a time within the steps in which this GPU does not work. The next work of this GPU ends the gap. From the start of the gap until the API call of
 * this work began, the host kept the device waiting: each of these moments counts for the innermost range of the thread that made the call; where that
 * thread has no range (or only annotations), of the thread that runs the steps. The time from the call on is latency of the launch, or of the device where
 * the call was made before the gap began. A call that takes GAP_LONG_CALL_NS or more is not a launch like others (it loads the kernel, or waits in the
 * driver): the host keeps the device waiting until the call returns. */
#ifndef OPSCOPE_DETECT_PARTS_GAPS_H
#define OPSCOPE_DETECT_PARTS_GAPS_H

#include "analysis/time/interval.h"
#include "detect/parts/places.h"

/* X(id, what the host did) */
#define GAP_CAUSES(X)                                                                                              \
	X(DATA, "data loader") X(SYNC, "waiting for the device") X(ALLOC, "device memory calls") X(GC, "Python's garbage collector") \
	X(PROFILER, "the profiler itself") X(LOAD, "loading kernels and other calls of 1 ms and more") X(CALL, "launching and other API calls") X(OP, "operators on the host") \
	X(PYTHON, "Python code") X(LATENCY, "launch latency and dependencies on the device") X(UNKNOWN, "nothing recorded")

/* A launch takes the host some microseconds, and under load up to some hundred. */
enum { GAP_LONG_CALL_NS = 1000 * 1000 };

enum gap_cause {
#define GAP_CAUSE_ID_(id, text) GAP_##id,
	GAP_CAUSES(GAP_CAUSE_ID_)
	GAP_N_CAUSES
};
extern const char *const gap_cause_text[GAP_N_CAUSES];

struct gap {
	int64_t start_ns, end_ns;
	uint32_t gpu;            /* the device work that ends it; ROW_NONE: a step ends it */
	uint32_t call;           /* the API call of this work; ROW_NONE = not known */
	int64_t blocked_ns;      /* the part of the gap in which the host was in DATA, SYNC, ALLOC, GC, PROFILER or LOAD */
};

struct gaps {
	struct gap *v;           /* in order of time */
	uint32_t n;
	int64_t ns[GAP_N_CAUSES];            /* all causes add up to the idle time */
	int64_t (*step_ns)[GAP_N_CAUSES];    /* of each step that gaps_new was given: of the gaps that begin in it; NULL = none were given */
	struct places place[GAP_N_CAUSES];   /* ops, calls and frames, with lines; none for LATENCY and UNKNOWN */
};

/* `idle`: the times in which GPU `device` has no work, normalised. `main_track`: the thread that runs the steps, ROW_NONE = not known. `step_start_ns`: ascending, of
 * `n_steps` steps by which the sums shall be told apart, too; a gap before the first is of the first. Needs PASS_NEST and PASS_CORRELATE. */
struct gaps *gaps_new(const struct profile *p, const struct stacks *s, const struct intervals *idle, int32_t device, uint32_t main_track, const int64_t *step_start_ns, uint32_t n_steps);
void gaps_free(struct gaps *g);

/* Whether the host had not yet made the call when the device ran out of work. */
static inline bool gap_waits_for_host(const struct gap *g, const struct profile *p)
{
	return g->call != ROW_NONE && p->span.start_ns[g->call] > g->start_ns;
}

/* Until when in the gap the host had not yet made the call, or was still in a long call: the gap's start where the call was made before it, the gap's end where
 * the call is not known. */
static inline int64_t gap_host_until(const struct gap *g, const struct profile *p)
{
	if (g->call == ROW_NONE || p->span.start_ns[g->call] > g->end_ns)
		return g->end_ns;
	int64_t returns = p->span.start_ns[g->call] + p->span.dur_ns[g->call];
	if (p->span.dur_ns[g->call] >= GAP_LONG_CALL_NS && returns > g->start_ns)
		return returns < g->end_ns ? returns : g->end_ns;
	return gap_waits_for_host(g, p) ? p->span.start_ns[g->call] : g->start_ns;
}

#endif
