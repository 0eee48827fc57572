/* PyProf's `parse` stage: for every kernel the ranges around its launch, told apart by what they say, and what follows from them:
 * op, direction, sequence numbers, number within its op, and for a backward kernel the forward one that it belongs to.
 * Needs PASS_NEST and PASS_CORRELATE. O(n) but for the order of the kernels, which is a radix sort.
 *
 * Ranges around a launch: those of its thread that begin before the call and end after it, outermost first; whatever the nesting
 * (each launch has its own chain of them, a path in a tree of `node`s that launches share).
 *
 * PYPROF_RECORDS_3 and _2 do as NVIDIA/PyProf 3.x (kernel.py, nsight.py, nvvp.py, parse.py) and PyProf2 did: kernels in the order
 * of their starts, one state for all threads, ids lost by removing from a list while walking it. PYPROF_RECORDS_DEFAULT: kernels
 * in the order of their launches, a state for each thread; names of backward ops of every version; numbers of one process only. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_RECORDS_H
#define OPSCOPE_PREDECESSORS_PYPROF_RECORDS_H

#include "base/arena.h"
#include "store/profile.h"

enum pyprof_record_rules { PYPROF_RECORDS_DEFAULT, PYPROF_RECORDS_3, PYPROF_RECORDS_2 };

/* Real programs nest some dozens of ranges. Of more than these, which only damage or malice brings, the innermost
 * PYPROF_AROUND_MAX around a launch are looked at, and no more than PYPROF_OPEN_MAX may be open on a thread. */
enum { PYPROF_AROUND_MAX = 256, PYPROF_OPEN_MAX = 4096 };

struct pyprof_node {
	uint32_t span;
	uint32_t outer;      /* the node around it; ROW_NONE = outermost */
};

/* One row a kernel, in order; all offsets and ids, no texts. */
struct pyprof_records {
	const struct profile *p;
	enum pyprof_record_rules rules;
	bool from_dict;      /* the input is a .dict: what PyProf found stands in the arguments of the kernels */
	uint32_t n;
	uint32_t *gpu;       /* row in gpu_op */
	uint32_t *chain;     /* innermost node around the launch; ROW_NONE = none */
	uint32_t *sub;       /* number within the op: subSeqId */
	int64_t *seq;        /* the sequence number that stays in seqId; ID_NONE = none at all */
	uint32_t *forward;   /* the record that lends marker, op, module, layer and trace; ROW_NONE */
	uint8_t *backward;
	uint32_t left_out;   /* kernels whose launch was not recorded: PyProf does not see them; the default has them */
	uint64_t too_deep;   /* ranges inside PYPROF_OPEN_MAX others: not looked at */
	struct pyprof_node *node;
	uint32_t n_nodes, cap_nodes;
	struct pyprof_names *names;
};

/* Is the input a .dict? */
bool pyprof_is_dict(const struct profile *p);

struct pyprof_records *pyprof_records_new(const struct profile *p, enum pyprof_record_rules rules);
void pyprof_records_free(struct pyprof_records *r);

struct pyprof_texts {
	struct str *v;
	unsigned n;
};
struct pyprof_ids {
	const int64_t *v;
	unsigned n;
};

/* One record with its texts, in the order of PyProf's dictionaries. */
struct pyprof_record {
	struct str short_name;
	int64_t duration_ns;
	struct pyprof_texts layer, trace, repr, marker, seq_marker;
	struct pyprof_ids seq, alt_seq;
	int64_t sub;
	bool backward;
	struct pyprof_texts mod, op;
	int64_t tid, device, stream; /* -1 = not stated */
	int64_t grid[3], block[3];
	struct str long_name;
};

/* Record i, its own: what r->forward lends is not taken. Arrays and new texts in `scratch`. */
void pyprof_record_get(const struct pyprof_records *r, uint32_t i, struct arena *scratch, struct pyprof_record *out);

/* Whether any range around the launch of record i says what op it was (argument markers, sequence numbers, other ranges). */
bool pyprof_record_attributed(const struct pyprof_records *r, uint32_t i);

#endif
