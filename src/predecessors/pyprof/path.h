/* Within pyprof*.c: a place in the tree of nodes, and what the ranges from the outermost one to it say. To go from one node to another costs the nodes
 * that lie between them: records in the order of their launches pay for each node about once, however deep ranges nest. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_PATH_H
#define OPSCOPE_PREDECESSORS_PYPROF_PATH_H

#include "predecessors/pyprof/chain.h"

/* Ranges of a kind on the path, by row in `span`, outermost first. */
enum pyprof_list {
	PYPROF_LIST_MARKER,      /* argument markers; by the default rules without imports */
	PYPROF_LIST_LAYER, PYPROF_LIST_TRACE, PYPROF_LIST_REPR,
	PYPROF_LIST_BACKWARD,    /* default: numbered ranges of autograd's backward pass */
	PYPROF_LIST_PLAIN,
	PYPROF_LIST_OP,          /* those of PLAIN that a framework made */
	PYPROF_LISTS
};

struct pyprof_spans {
	uint32_t *v;
	uint32_t n, cap;
};

/* A range with a sequence number. One of the same name and number as another around it is not listed. */
struct pyprof_path_seq {
	uint32_t span, slot;     /* slot: where `seen` has it */
	int64_t least;           /* the least number but 0 up to here; INT64_MAX: there is none */
};

struct pyprof_level {
	uint32_t node;
	uint8_t lists;           /* bits 1 << enum pyprof_list */
	bool numbered, backward, accumulate; /* numbered: stands in `seq` */
};

struct pyprof_path {
	struct pyprof_level *level; /* one for each node, outermost first */
	uint32_t n, cap;
	struct pyprof_spans list[PYPROF_LISTS];
	struct pyprof_path_seq *seq;
	uint32_t n_seq, cap_seq;
	uint32_t low_seq;        /* the least n_seq since the caller set low_seq to n_seq: so many are still those that they were */
	uint32_t *seen, n_seen;  /* hash table of name and number: index in `seq`; ROW_NONE = free. Emptied in the reverse order, so that no search passes a gap. */
	uint32_t n_zero, n_backward, n_accumulate; /* of `seq` those numbered 0; default: levels of autograd's backward pass, and of those the ones that accumulate */
};

/* Makes `x` the path to node `chain` of r; ROW_NONE: an empty one. */
void pyprof_path_go(struct pyprof_path *x, const struct pyprof_records *r, uint32_t chain);
void pyprof_path_release(struct pyprof_path *x);

/* Whether 0 counts as a number there: it does not where it is the least of several. */
bool pyprof_path_has_zero(const struct pyprof_path *x);
/* The least number that counts; n_seq > 0. */
int64_t pyprof_path_least(const struct pyprof_path *x);

/* Whether a range of the path says what op a launch in it is of. */
static inline bool pyprof_path_says(const struct pyprof_path *x)
{
	return x->list[PYPROF_LIST_MARKER].n || x->n_seq || x->list[PYPROF_LIST_PLAIN].n;
}

#endif
