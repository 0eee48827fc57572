/* A tree of ops as the plugin compares it (profiler/diffrun/ of the plugin): ops, modules, steps, data loaders, optimizers, and the backward pass of each module, which the plugin puts where the
 * module began. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_TREE_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_TREE_H

#include "base/intern.h"
#include "store/profile.h"

enum tb_kind { TB_OP, TB_MODULE, TB_STEP, TB_LOADER, TB_OPTIMIZER, TB_BACKWARD }; /* all but ops are matched */

struct tb_list {
	uint32_t *v;
	uint32_t n, cap;
};

struct tb_node {
	int64_t start_ns, end_ns;
	int64_t calls_ns;        /* of its own API calls */
	int64_t dev_ns, own_dev_ns, own_host_ns;
	int64_t ext_id;          /* ID_NONE = not recorded */
	struct tb_list kids;
	uint32_t name;
	uint32_t tid;            /* its thread's text, of the profile; of a backward module that of its first child */
	uint8_t kind;            /* enum tb_kind */
	bool is_op;              /* of category cpu_op */
	bool counts;             /* an operator of the tables */
};

/* A thread: nodes [first, first + n) in order of start. */
struct tb_thread {
	uint32_t tid;            /* its text */
	uint32_t first, n;
	struct tb_list kids;     /* of its root */
	int64_t start_ns, end_ns;
	bool has_step;
};

struct tb_tree {
	struct intern names;
	struct tb_node *v;
	uint32_t n, cap;
	struct tb_thread *thread; /* in the order in which they appear */
	uint32_t n_threads, cap_threads;
	uint32_t root;           /* the first thread that has ops, whose tree the plugin shows */
	struct tb_list top;      /* what is compared: the children of the steps, else of the root */
};

/* The tree of the first thread that has ops; it does not need the profile any more. Needs PASS_NEST and PASS_CORRELATE. The caller's (tb_tree_free). NULL and *e, ERR_DATA, where there
 * are no ops. */
struct tb_tree *tb_tree_new(const struct profile *p, struct err *e);
void tb_tree_free(struct tb_tree *t);

/* The tree's. */
struct str tb_name(const struct tb_tree *t, uint32_t node);
void tb_push(struct tb_list *l, uint32_t x);

#endif
