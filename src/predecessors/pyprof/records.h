/* PyProf's `parse` stage: for every kernel the ranges around its launch, told apart by what they say, and what follows from them:
 * op, direction, sequence numbers, number within its op, and for a backward kernel the forward one that it belongs to.
 * Needs PASS_NEST and PASS_CORRELATE. O(n) but for the order of the kernels, which is a radix sort; by PyProf's rules, kernels x ranges around each.
 *
 * Ranges around a launch: those of its thread that begin before the call and end after it, outermost first, however many
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

/* Ranges of one thread nest. Of those that begin within one and end behind it, which only damage or malice brings in numbers, no more
 * may be open. */
enum { PYPROF_OVERLAP_MAX = 256 };

struct pyprof_node {
	uint32_t span;
	uint32_t outer;      /* the node around it; ROW_NONE = outermost */
	uint32_t depth;      /* nodes around it */
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
	uint64_t overlapping; /* ranges that overlap PYPROF_OVERLAP_MAX others: not looked at */
	struct pyprof_node *node;
	uint32_t n_nodes, cap_nodes;
	struct pyprof_names *names;
	struct pyprof_path *path; /* where pyprof_record_get was last, */
	struct pyprof_facts *facts; /* and what it found there */
};

/* Is the input a .dict? */
bool pyprof_is_dict(const struct profile *p);

struct pyprof_records *pyprof_records_new(const struct profile *p, enum pyprof_record_rules rules);
void pyprof_records_free(struct pyprof_records *r);

/* Of a list with too many, the middle is left out: `left_out` of them, before v[gap]. */
struct pyprof_texts {
	struct str *v;
	unsigned n, gap, left_out;
};
struct pyprof_ids {
	const int64_t *v;
	unsigned n, gap, left_out;
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

/* Record i, its own: what r->forward lends is not taken. Arrays and new texts in `scratch`. By the default rules, of lists of more than
 * `most` (>= 2) the middle is left out; PyProf's are whole. Records asked for in order cost the more nodes the less they share, and what they list. */
void pyprof_record_get(const struct pyprof_records *r, uint32_t i, unsigned most, struct arena *scratch, struct pyprof_record *out);

/* Whether any range around the launch of record i says what op it was (argument markers, sequence numbers, other ranges). */
bool pyprof_record_attributed(const struct pyprof_records *r, uint32_t i);

#endif
