/* Within pyprof: the latest forward record of a sequence number, by the default rules.
 *
 * A forward record has the sequence numbers of all ranges around its launch. Storing each number for each record would take O(depth x records). Instead, a
 * range claims its number once. As long as the thread stays in the range, the latest record of the number is the latest record of the thread. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_FORWARD_H
#define OPSCOPE_PREDECESSORS_PYPROF_FORWARD_H

#include "base/hash.h"
#include "predecessors/pyprof/path.h"

/* The claim of a number by a range. It is open from the first forward record in the range until the thread leaves the range. */
struct pyprof_claim {
	uint32_t thread;
	uint32_t last;           /* the latest record in the range, once closed */
	uint32_t older;          /* a claim of the same number, open on another thread when this one was made; ROW_NONE = none was */
	bool open;
};

struct pyprof_forward_thread {
	struct pyprof_path path;
	uint32_t *claim;         /* by entry of path.seq, the first n: its claim; ROW_NONE = the number is 0, or a range further out has claimed it */
	uint32_t n, cap;
	uint32_t last;           /* its latest forward record; ROW_NONE = it had none */
};

struct pyprof_forward {
	struct idmap latest;     /* number and process (forward_key) -> the newest claim */
	struct pyprof_claim *claim;
	uint32_t n_claims, cap_claims;
	struct pyprof_forward_thread *thread; /* by track */
	uint32_t n_threads;
	const uint32_t *process; /* by track: its process, < n_processes. Sequence numbers of different processes have nothing to do with each other */
	int64_t n_processes;
};

/* least, most: of the sequence numbers in r->node; n: how many nodes have one. `process` stays the caller's, and must outlive *x. O(tracks). */
void pyprof_forward_init(struct pyprof_forward *x, const struct pyprof_records *r, const uint32_t *process, int64_t n_processes, int64_t least, int64_t most,
                         uint64_t n);
void pyprof_forward_release(struct pyprof_forward *x);

/* Moves the thread to node `chain`, where its next record was launched; returns the path. To be called before the other two. `thread`: a track. */
const struct pyprof_path *pyprof_forward_enter(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t chain);
/* Record i, launched where the thread is, is a forward record. */
void pyprof_forward_remember(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t i);
/* The latest forward record in a range of number `seq`, in the process of track `thread`; ROW_NONE = there is none. O(threads). */
uint32_t pyprof_forward_find(const struct pyprof_forward *x, uint32_t thread, int64_t seq);

#endif
