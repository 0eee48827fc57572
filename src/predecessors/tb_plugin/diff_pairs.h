/* The plugin's comparison of two runs (profiler/diffrun/ of the plugin): the op trees of their main threads, node by node.
 *
 * Nodes of the two trees that are no ops are matched by kind and name, the first one that fits, in order; what stands between two matches is compared as a whole. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_PAIRS_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_DIFF_PAIRS_H

#include "base/buf.h"
#include "predecessors/tb_plugin/diff_tree.h"

/* Appends the comparison as the plugin's JSON: all of it (ERR_LIMIT beyond 64 MiB), or the node at `path` ("0-3-1") with its children. Times are in us. */
int tb_diff_put_all(const struct tb_tree *left, const struct tb_tree *right, struct buf *out, struct err *e);
int tb_diff_put_node(const struct tb_tree *left, const struct tb_tree *right, struct str path, struct buf *out, struct err *e);

#endif
