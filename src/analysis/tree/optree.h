/* The op tree with its times: one node per op, annotation, data-loader or optimizer range, in pre-order (a parent stands
 * before its children), per thread. Built on demand and freed by its user; needs PASS_NEST and PASS_CORRELATE.
 *
 * Formulas, all int64 ns:
 *   host_total = end - start
 *   host_self  = host_total - what direct children, own API calls and calls directly in it cover of it
 *   dev_self   = durations of device work launched by own API calls (no overlap removal)
 *   dev_total  = dev_self + children's dev_total
 *   tc_self, tc_total: the same over kernels that use Tensor Cores
 *   tc_unknown_self, tc_unknown_total: over kernels whose name does not tell
 *
 * An API call belongs to the op with its external id on the same process, else to the innermost op around it
 * in time; a single child of the same name is folded into its parent, which keeps the calls of both.
 * struct optree_rules (analysis/tree/optree_work.h) say what is otherwise where numbers of another tool are asked for. */
#ifndef OPSCOPE_ANALYSIS_TREE_OPTREE_H
#define OPSCOPE_ANALYSIS_TREE_OPTREE_H

#include "analysis/analysis.h"

enum optree_kind {
	NODE_OP,           /* what tables count as an operator */
	NODE_EXCLUDED_OP,  /* an op that tables leave out: DataParallel.forward, Optimizer.zero_grad, ... */
	NODE_STEP,         /* ProfilerStep#N */
	NODE_DATALOADER,   /* enumerate(DataLoader)#....__next__, enumerate(DataPipe)#... */
	NODE_OPTIMIZER,    /* Optimizer.step* */
	NODE_COMM,         /* a collective's annotation: nccl:all_reduce, gloo:... */
	NODE_USER,         /* any other annotation */
};

struct optree {
	uint32_t n;
	uint32_t *span;        /* row in profile->span */
	uint32_t *parent;      /* node, ROW_NONE = top of its thread */
	uint8_t *kind;         /* enum optree_kind */
	uint8_t *tc_eligible;  /* by name, by a child's, or because it launched a Tensor Core kernel */
	int64_t *host_self, *dev_total, *dev_self;
	int64_t *tc_total, *tc_self, *tc_unknown_total, *tc_unknown_self; /* optree_sum; NULL = 0 for all nodes */
	uint32_t *node_of_span;/* span row -> the node it became or was folded into; ROW_NONE for spans that are not nodes */
	uint32_t *gpu_node;    /* gpu_op row -> the op that launched it; where none is around the launch, the annotation or
	                        * other node that is; ROW_NONE = unattributed */
	uint8_t *gpu_lost;     /* gpu_op row -> 1: left out by the rules, not only unattributed */
	uint64_t folded;       /* nodes folded into a parent of the same name */
	/* Device time that no node launched. */
	int64_t unattributed_ns;
	uint64_t unattributed_ops;
	bool is_kept;          /* store/reuse.h */
};

/* A node's place in one of the arrays that may be NULL. */
static inline int64_t optree_sum(const int64_t *sums, uint32_t node) { return sums ? sums[node] : 0; }
static inline int64_t optree_host_total(const struct optree *t, const struct profile *p, uint32_t node) { return span_host_ns(p, t->span[node]); }

struct optree_rules;
extern const struct optree_rules optree_own;

struct optree *optree_new(const struct profile *p, const struct optree_rules *rules);
void optree_free(struct optree *t);

/* Name (string id) of the op, collective or optimizer that launched this device work: the innermost; 0 = none. A step or a range of the
 * user's launches nothing by itself. */
uint32_t optree_operator(const struct optree *t, const struct profile *p, uint32_t gpu_op);

/* What an annotation or op with this name is. */
enum optree_kind optree_classify(struct str name, enum span_kind kind);

#endif
