/* The modules and ops of two sides, aligned: which module of A is which of B, whatever number or name it has in either.
 *
 * The names of ops, "/GPT_0/Block_3/Linear_14/linear", make a tree of each side: modules, with ops as leaves, in the order of the side's parts: stream by stream, each by time. Below two modules that belong together
 * the modules are aligned as sequences (base/align.h). Equal are those whose classes, ops, passes and shapes of inputs are equal throughout. Others fit
 * the better, the more ops they have in common; they need the same class (the name without its number), or nearly the same ops, which is a module that was renamed.
 * A module that wraps one (DistributedDataParallel) is passed over. Ops of two modules belong together by type. A module that moved within its parent is found by its content, else by its name.
 *
 * 10^6 modules and ops a side take about 2 s (bench/diff_align.c). Life cycle: init, read, release. */
#ifndef OPSCOPE_QUERY_DIFF_ALIGN_H
#define OPSCOPE_QUERY_DIFF_ALIGN_H

#include "query/diff_side.h"

struct diff_node {
	uint32_t name[2];        /* its own, "Block_3" or "linear", in A and in B; texts of diff_align.texts; 0 = the side lacks it */
	uint32_t full[2];        /* of an op: with its path, as recorded; texts of the sides */
	uint32_t parent;         /* ROW_NONE = none; stands before its children */
	uint32_t depth;
	bool is_op;
	bool on[2];
};

struct diff_align {
	const struct diff_side *side[2];
	struct intern texts;
	struct diff_node *node;  /* in pre-order, siblings in the order of B; of A alone behind the one that precedes them in A */
	uint32_t n;
	uint32_t *of_part[2];    /* part of the side -> node of its op; ROW_NONE: copies and idle time have none */
};

/* Both sides must outlive *x. */
void diff_align_init(struct diff_align *x, const struct diff_side *a, const struct diff_side *b);
void diff_align_release(struct diff_align *x);

/* Appends the op's name with its path, with the names of A where A has the module or op: what both sides have is told by one name. */
void diff_align_put_name(const struct diff_align *x, uint32_t op, struct buf *out);

/* Appends the op's name without numbers of layers: "/GPT/Block/linear" of "/GPT_0/Block_3/linear", a * in place of each number in "/layer1.0/conv2d". `type`: what the name ends with, kept as it is; a name that ends otherwise is kept as a
 * whole. */
void diff_put_family(struct str name, struct str type, struct buf *out);

#endif
