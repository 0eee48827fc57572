/* The tree of nn.Modules with figures per node. A node is a module at its place: the same module reached by two ways is two
 * nodes, and all calls of one module at one place are one node (identical sub-trees are merged).
 * Life cycle: module_tree_init, module_tree_node for each call (a parent before its children), figures added to the nodes,
 * module_tree_finish, then read through `order`. */
#ifndef OPSCOPE_ANALYSIS_TREE_MODULE_TREE_H
#define OPSCOPE_ANALYSIS_TREE_MODULE_TREE_H

#include "base/buf.h"
#include "base/intern.h"

#define MODULE_NONE UINT32_MAX

struct module_node {
	uint32_t name, type;       /* in module_tree.names; type: 0 = not known */
	int32_t module_id;         /* -1 = not recorded */
	uint32_t parent;           /* MODULE_NONE = root */
	uint32_t depth;            /* 0 = root; after module_tree_finish */
	uint32_t merged_into;      /* MODULE_NONE = stands for itself */
	uint64_t calls;            /* forward passes */
	uint64_t recompute_calls;  /* calls made within the backward pass (activation checkpointing) */
	uint64_t operators;        /* ops directly inside */
	int64_t host_total, host_self;
	int64_t dev_self, dev_total;                  /* launched inside, in the forward pass */
	int64_t bwd_host_self, bwd_host_total;        /* backward ops of the ops inside */
	int64_t bwd_dev_self, bwd_dev_total;          /* launched by those, and by recomputation */
	int64_t recompute_dev_self, recompute_dev_total; /* of bwd_dev: recomputation */
};

struct module_tree {
	struct module_node *v;
	uint32_t n, cap;
	struct intern names;
	struct intern keys;   /* (parent, name, module id) -> node + 1 */
	uint32_t *order;      /* live nodes in pre-order, roots by name, children in order of their first call */
	uint32_t n_order;
};

void module_tree_init(struct module_tree *t);
void module_tree_release(struct module_tree *t);

/* The node of this module under `parent`, made at first sight. */
uint32_t module_tree_node(struct module_tree *t, uint32_t parent, struct str name, int32_t module_id);

/* Modules called only within the backward pass are joined to the node of the same module in the forward tree, when there is
 * exactly one; with all below them. Needs calls and recompute_calls, and moves these; other figures are added later, to
 * module_tree_live nodes. Returns how many calls were joined. */
uint64_t module_tree_join_recomputed(struct module_tree *t);

/* Appends the names from the outermost module to this one, with slashes between; of more than 64 the inner ones. */
void module_tree_path(const struct module_tree *t, uint32_t node, struct buf *b);

/* The node that `node` was merged into, or itself; MODULE_NONE stays. */
static inline uint32_t module_tree_live(const struct module_tree *t, uint32_t node)
{
	while (node != MODULE_NONE && t->v[node].merged_into != MODULE_NONE)
		node = t->v[node].merged_into;
	return node;
}

/* Makes `order` and depths, and adds up: *_total of a node = its *_self + its children's *_total. A node without calls of
 * its own (a name that only others contain) gets its children's host_total. */
void module_tree_finish(struct module_tree *t);

#endif
