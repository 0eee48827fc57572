/* The plugin's comparison of two runs (profiler/diffrun/ of the plugin): the op trees of their main threads, node by node.
 *
 * A tree has ops, modules, steps, data loaders, optimizers, and the backward pass of each module, which the plugin puts where the module began. Nodes of the two trees that are no ops are
 * matched by kind and name, the first one that fits, in order; what stands between two matches is compared as a whole. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_TREE_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_TREE_H

#include "base/buf.h"
#include "store/profile.h"

struct tb_tree;

/* The tree of the first thread that has ops; it does not need the profile any more. Needs PASS_NEST and PASS_CORRELATE. The caller's (tb_tree_free). NULL and *e, ERR_DATA, where there
 * are no ops. */
struct tb_tree *tb_tree_new(const struct profile *p, struct err *e);
void tb_tree_free(struct tb_tree *t);

/* Appends the comparison as the plugin's JSON: all of it (ERR_LIMIT beyond 64 MiB), or the node at `path` ("0-3-1") with its children. Times are in us. */
int tb_diff_put_all(const struct tb_tree *left, const struct tb_tree *right, struct buf *out, struct err *e);
int tb_diff_put_node(const struct tb_tree *left, const struct tb_tree *right, struct str path, struct buf *out, struct err *e);

#endif
