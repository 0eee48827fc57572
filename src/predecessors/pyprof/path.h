/* Within pyprof: a path in the tree of nodes (records.h), from the outermost range to one node, and what the ranges on it say. Going from one node to another
 * takes O(nodes between them). Records in the order of their launches visit each node about once, however deep ranges nest. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_PATH_H
#define OPSCOPE_PREDECESSORS_PYPROF_PATH_H

#include "predecessors/pyprof/chain.h"

/* Ranges of a kind on the path, by row in `span`, outermost first. */
enum pyprof_list {
	PYPROF_LIST_MARKER,      /* argument markers; by the default rules without imports (pyprof_is_import) */
	PYPROF_LIST_LAYER, PYPROF_LIST_TRACE, PYPROF_LIST_REPR,
	PYPROF_LIST_BACKWARD,    /* by the default rules: ranges of autograd's backward pass with a sequence number */
	PYPROF_LIST_PLAIN,
	PYPROF_LIST_OP,          /* ranges of PLAIN that a framework made */
	PYPROF_LISTS
};

struct pyprof_spans {
	uint32_t *v;
	uint32_t n, cap;
};

/* A range with a sequence number. A range with the name and number of one around it is not listed. */
struct pyprof_path_seq {
	uint32_t span, slot;     /* slot: its place in `seen` */
	int64_t least;           /* the least number other than 0 from the outermost range to here; INT64_MAX = there is none */
};

/* A node of the path, and what is undone when the path leaves it. */
struct pyprof_level {
	uint32_t node;
	uint8_t lists;           /* lists that its range is in: bits 1 << enum pyprof_list */
	bool numbered;           /* its range is in `seq` */
	bool backward, accumulate; /* it counts in n_backward, in n_accumulate */
};

/* {0} = empty. Release with pyprof_path_release. */
struct pyprof_path {
	struct pyprof_level *level; /* nodes, outermost first */
	uint32_t n, cap;
	struct pyprof_spans list[PYPROF_LISTS];
	struct pyprof_path_seq *seq;
	uint32_t n_seq, cap_seq;
	uint32_t low_seq;        /* the least n_seq since the caller last set low_seq = n_seq: the first low_seq entries have not changed since */
	uint32_t *seen, n_seen;  /* hash table of name and number: index in `seq`; ROW_NONE = free. Entries go in the reverse order, so that no search meets a gap */
	uint32_t n_zero;         /* entries of `seq` with number 0 */
	uint32_t n_backward, n_accumulate; /* by the default rules: ranges of autograd's backward pass; ranges of AccumulateGrad */
};

/* Makes *x the path to node `chain` of r->node; ROW_NONE: the empty path. */
void pyprof_path_go(struct pyprof_path *x, const struct pyprof_records *r, uint32_t chain);
void pyprof_path_release(struct pyprof_path *x);

/* Whether 0 counts as a sequence number of the path. PyProf drops it where it is the least of several numbers. */
bool pyprof_path_has_zero(const struct pyprof_path *x);
/* The least sequence number that counts. n_seq > 0. */
int64_t pyprof_path_least(const struct pyprof_path *x);

/* Whether a range on the path tells the op of a launch. */
static inline bool pyprof_path_says(const struct pyprof_path *x)
{
	return x->list[PYPROF_LIST_MARKER].n || x->n_seq || x->list[PYPROF_LIST_PLAIN].n;
}

#endif
