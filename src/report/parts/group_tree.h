/* Ops grouped by the paths in their names: "/Net/layer1/conv2d" is in the groups "/", "/Net/" and "/Net/layer1/".
 *
 * A group's times are unions over all ops below it: of their ranges on the host (cpu), of their device work, of
 * each GPU by itself (gpu), of the parts of their ranges outside API calls (overhead), and of the gaps between the device work of each
 * call (idle). Each iteration has its own; total is their sum, what lies in no iteration included; min, max and mean are over the
 * iterations in which the group ran. O(n log n + n x depth), and no deeper than GROUP_DEPTH_MAX. */
#ifndef OPSCOPE_REPORT_PARTS_GROUP_TREE_H
#define OPSCOPE_REPORT_PARTS_GROUP_TREE_H

#include "base/buf.h"
#include "base/intern.h"
#include "query/op_sums.h"

enum { GROUP_DEPTH_MAX = 128 };
#define GROUP_NONE UINT32_MAX

struct group {
	struct str name;          /* with the '/' at its end: "/Net/layer1/" */
	struct str part;          /* the last part: "layer1" */
	uint32_t parent;
	uint32_t depth;           /* 0 = "/" */
	uint32_t iterations;      /* iterations in which the group ran */
	uint64_t calls;
	uint32_t ops, eligible, using_tc, eligible_using_tc; /* that ran */
	struct op_stat time[OP_TIMES];
};

/* The iterations: ascending, disjoint, [start, end). */
struct group_iterations {
	const int64_t *start_ns, *end_ns;
	uint32_t n;
};

struct group_tree {
	struct group *v;          /* a parent stands before its children; 0 = everything, 1 = "/" */
	uint32_t n, cap;
	uint32_t *of_op;          /* op -> innermost group; 0 for calls outside ops */
	struct arena texts;
	struct intern keys;       /* (parent, part) -> group */
	struct buf key;
};

/* Makes the groups from the names of ops. `by_type`: an op whose name has no path is grouped by direction and type, "/(forward)/conv2d/". */
void group_tree_init(struct group_tree *t, const struct profile *p, bool by_type);
/* Adds all instances of the window. */
void group_tree_measure(struct group_tree *t, const struct profile *p, const struct window *w, const struct group_iterations *it,
                        const struct op_rules *rules);
void group_tree_release(struct group_tree *t);

static inline double group_mean(const struct group *g, enum op_time t)
{
	return g->iterations ? (double)g->time[t].total / (double)g->iterations : 0;
}

#endif
