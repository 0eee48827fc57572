/* Where the time went, as one tree of frames: what flame graphs and folded stacks show.
 *
 * A path is, from outside in:
 *   FLAME_STACK   Python frames, then the ops that they called, each inside the next; backward ops stand at the Python stack of their
 *                 forward op (stacks.h), where the engine's range tells them apart
 *   FLAME_MODULE  the same with no Python frames but those of nn.Modules
 *   FLAME_OP      annotations (ProfilerStep#7 is ProfilerStep*) and ops
 * and FLAME_DEVICE ends each with the kernel, copy or set.
 *
 * Weights, int64 ns:
 *   FLAME_DEVICE  duration of each piece of device work, at what launched it. The sum is that of all device work; what no recorded op
 *                 or frame launched has a root of its own.
 *   FLAME_CPU     each moment of each thread counts at the innermost op, annotation or Python frame open in it. The sum is the time
 *                 in which threads were in any. A frame that a view does not show gives its time to what is around it, or to a root
 *                 of its own. */
#ifndef OPSCOPE_ANALYSIS_TREE_FLAME_H
#define OPSCOPE_ANALYSIS_TREE_FLAME_H

#include "store/profile.h"

enum flame_by { FLAME_STACK, FLAME_MODULE, FLAME_OP };
enum flame_metric { FLAME_DEVICE, FLAME_CPU };

enum flame_kind {
	FLAME_ROOT,      /* node 0: everything */
	FLAME_PYTHON,
	FLAME_NN_MODULE,
	FLAME_USER,      /* annotation */
	FLAME_FRAMEWORK, /* op */
	FLAME_WORK,      /* kernel, copy, set */
	FLAME_NONE,      /* a root for what belongs to nothing */
	FLAME_KINDS,
};

/* Frames nested deeper than this stand as one with that at this depth. */
enum { FLAME_DEPTH = 512 };

struct flame_node {
	uint32_t name;       /* in flame->names */
	uint32_t parent;     /* a smaller number; node 0 is its own */
	uint16_t depth;      /* 0 of node 0 */
	uint8_t kind;        /* enum flame_kind */
	int64_t self_ns, total_ns;
	uint64_t count;      /* pieces of work, or ranges, that stand here */
};

struct flame {
	struct flame_node *node;
	uint32_t n;
	struct intern names;
	uint64_t too_deep;   /* frames that FLAME_DEPTH left out */
	bool has_stacks;     /* some Python stack was recorded */
	struct intern keys;  /* (parent, name, kind): node + 1 */
	uint32_t cap;
};

/* Needs PASS_NEST and PASS_CORRELATE. O(ranges + length of the stacks). */
struct flame *flame_new(const struct profile *p, enum flame_by by, enum flame_metric metric);
void flame_free(struct flame *f);

/* FLAME_DEVICE where there is device work. */
static inline enum flame_metric flame_default(const struct profile *p)
{
	return p->gpu_op.rows.n ? FLAME_DEVICE : FLAME_CPU;
}

static inline struct str flame_name(const struct flame *f, uint32_t node) { return intern_get(&f->names, f->node[node].name); }

#endif
