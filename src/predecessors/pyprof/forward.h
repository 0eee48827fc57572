/* Within pyprof*.c: the latest forward record of a sequence number, by the default rules.
 *
 * A forward record has the numbers of all ranges around its launch. To write each of them down for each record would cost depth x records. So a number
 * that is written down stands for the range that has it: as long as the thread is within the range, its latest record is the thread's latest. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_FORWARD_H
#define OPSCOPE_PREDECESSORS_PYPROF_FORWARD_H

#include "base/hash.h"
#include "predecessors/pyprof/path.h"

/* A number, from when a thread had a forward record in a range of this number until the thread left the range. */
struct pyprof_claim {
	uint32_t thread;
	uint32_t last;           /* record, once closed */
	uint32_t older;          /* claim of the same number that was open on another thread; ROW_NONE */
	bool open;
};

struct pyprof_forward_thread {
	struct pyprof_path path;
	uint32_t *claim;         /* one for each of the first n of path.seq; ROW_NONE: none, the number is claimed further out, or is 0 */
	uint32_t n, cap;
	uint32_t last;           /* latest forward record; ROW_NONE */
};

struct pyprof_forward {
	struct idmap latest;     /* key of a number -> claim */
	struct pyprof_claim *claim;
	uint32_t n_claims, cap_claims;
	struct pyprof_forward_thread *thread; /* by track */
	uint32_t n_threads;
	const uint32_t *process; /* by track: number of its process, below n_processes. Numbers of one process say nothing of another. */
	int64_t n_processes;
};

/* `least`, `most`: of the numbers of r's nodes; n: how many have one. `process` stays the caller's. O(tracks). */
void pyprof_forward_init(struct pyprof_forward *x, const struct pyprof_records *r, const uint32_t *process, int64_t n_processes, int64_t least, int64_t most,
                         uint64_t n);
void pyprof_forward_release(struct pyprof_forward *x);

/* The path to `chain`, in which the next record of track `thread` was launched. Comes before the two below. */
const struct pyprof_path *pyprof_forward_enter(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t chain);
/* Record i, launched there, is a forward one. */
void pyprof_forward_remember(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t i);
/* The latest record that was remembered in a range of number `seq`, in the process of track `thread`; ROW_NONE. */
uint32_t pyprof_forward_find(const struct pyprof_forward *x, uint32_t thread, int64_t seq);

#endif
