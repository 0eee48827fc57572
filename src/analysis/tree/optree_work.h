/* The op tree while it is made: for optree.c, and for rules that make it otherwise. */
#ifndef OPSCOPE_ANALYSIS_TREE_OPTREE_WORK_H
#define OPSCOPE_ANALYSIS_TREE_OPTREE_WORK_H

#include "analysis/tree/optree.h"
#include "op/kernels.h"

/* Work arrays of one construction. */
struct optree_work {
	const struct profile *p;
	struct optree *t;
	const struct optree_rules *rules;
	uint32_t *near_node;     /* per span: the node that it is, or that is around it */
	uint32_t *n_children, *last_child;
	uint32_t *folded_into;   /* per node; ROW_NONE = stands for itself */
	uint32_t *op_of_call;    /* per call: the op that the rules give it to. For rules alone that make it; freed with the rest */
	uint32_t *near_op;       /* per node: the op at or around it; ROW_NONE = none */
	uint8_t *has_same_child; /* per node: its only child had its name and was folded */
	uint8_t *eligible_name;  /* per string: the same for op names that could use Tensor Cores */
	uint8_t *kind_of_name;   /* per string: 0 not asked, else enum optree_kind + 1, apart for ops and annotations */
};

/* What is made otherwise for the numbers of another tool. The stages run in this order. */
struct optree_rules {
	bool user_nodes;                                              /* annotations are nodes, too */
	void (*nodes)(struct optree_work *m);                         /* adds the nodes, parents before children, and fills near_node */
	/* Here nodes are folded into parents of the same name. */
	void (*own_time)(struct optree_work *m);                      /* fills t->host_self of the nodes that stand for themselves; the others have 0 */
	uint32_t (*node_of_gpu)(struct optree_work *m, uint32_t gpu); /* the node that launched device work; ROW_NONE = unattributed */
	enum tri (*uses_tc)(const struct profile *p, uint32_t gpu);   /* a row of gpu_op: a kernel */
	bool (*tc_eligible)(struct str op);
};

/* Whether a span is a node, by the rules; *kind gets which. */
bool optree_is_node(struct optree_work *m, uint32_t span, enum optree_kind *kind);
/* Appends a node. `parent`: ROW_NONE = top of its thread. */
uint32_t optree_add_node(struct optree_work *m, uint32_t span, enum optree_kind kind, uint32_t parent);

/* The node that stands for `node`, which may be ROW_NONE. */
static inline uint32_t optree_live(const struct optree_work *m, uint32_t node)
{
	return node != ROW_NONE && m->folded_into[node] != ROW_NONE ? m->folded_into[node] : node;
}

#endif
