/* FLOPs and bytes of device work: which op's model covers which kernel. Built on demand and freed by its user; needs PASS_NEST
 * and PASS_CORRELATE. O(n).
 *
 * A kernel is covered by the innermost op around its launch that has a model with known FLOPs or bytes; a backward kernel
 * without such an op by the backward of the forward op that its sequence number names (analysis/tree/fwdbwd.h); where that has no shapes,
 * of PyProf's marker around it, all nodes of one backward run of which are one instance. Each call of an op
 * ("instance") counts once: its FLOPs and bytes stand at one of its kernels, the longest of the kernel class that fits the
 * op's class (else the longest at all), or in equal parts at the `parts` longest of these (a backward GEMM that lacks one
 * of its two kernels counts one part). The two products of a mixture of experts stand at the two kernels that fit, in order of start. All other kernels
 * of the instance carry 0. An op whose model covers kernels of its own but has ops inside that are covered by models themselves counts 0, so that nothing counts twice; ops inside that only move, fill
 * or draw data do not make it so, nor, in a product, convolution, attention or recurrent layer, any but another of these.
 * A kernel that names its collective itself is one instance. Views (aten::view, aten::empty, ...) cover no kernel. */
#ifndef OPSCOPE_ANALYSIS_COSTS_COSTS_H
#define OPSCOPE_ANALYSIS_COSTS_COSTS_H

#include "op/cost.h"
#include "store/profile.h"

/* Parts of cost.uneven, in costs.parts. */
enum { COSTS_FIRST = 1, COSTS_SECOND = 2 };

struct costs {
	struct cost *cost;       /* distinct ones, by op name, arguments and direction; those whose rules ask for a server's batch (op_facts.batch)
	                          * by its iteration, too, where that states it */
	uint32_t n;
	uint32_t n_made;         /* of n, those of device work: the others were asked for later */
	/* One per gpu_op row. */
	uint32_t *of_gpu;        /* index into cost[]; ROW_NONE = no model covers it */
	uint32_t *op;            /* the op instance (row in span) that `of_gpu` is of; where there is none, the innermost op
	                          * around the launch; ROW_NONE = unattributed */
	uint8_t *parts;          /* how many of cost->parts this kernel carries; 0 = it is counted at another kernel. With cost->uneven: bits COSTS_FIRST,
	                          * COSTS_SECOND */
	/* Duration of all kernels: the three add up to kernel_ns. */
	int64_t kernel_ns;
	int64_t modelled_ns;     /* covered */
	int64_t unmodelled_ns;   /* launched by an op for which there is no model, or whose arguments were not recorded */
	int64_t unattributed_ns; /* launched by no op */
	struct costs_cache *cache;
	struct arena arena;
	const struct costs *base; /* the one that is kept (store/reuse.h), of which the arrays are borrowed: cost[] until this one adds to it. NULL = none */
	bool is_kept;            /* it is the one that is kept */
};

struct costs *costs_new(const struct profile *p, const struct cost_rules *rules);
/* The same with the links of *p that the caller has; they are borrowed for the call. */
struct fwdbwd;
struct costs *costs_new_linked(const struct profile *p, const struct cost_rules *rules, const struct fwdbwd *links);
/* Only the models of ops: for costs_of_span, costs_index_of_span and costs_facts, and costs_free. Needs no pass. */
struct costs *costs_models(const struct profile *p, const struct cost_rules *rules);
void costs_free(struct costs *c);
/* Lets models of convolutions whose values were not recorded go by linked ops (op_facts.linked): those of the backward that `links` finds, and
 * the op around that of the weight's gradient. costs_new does so itself; default rules alone. Needs PASS_NEST. */
struct fwdbwd;
void costs_link(struct costs *c, const struct profile *p, const struct fwdbwd *links);

/* What kernel `gpu` carries; COST_UNKNOWN when not covered or the model does not say. */
int64_t costs_flops(const struct costs *c, uint32_t gpu);
int64_t costs_bytes(const struct costs *c, uint32_t gpu);
int64_t costs_bytes_least(const struct costs *c, uint32_t gpu);

/* The model of one op (row in span), whatever it launched; the result lives as long as *c. */
const struct cost *costs_of_span(struct costs *c, const struct profile *p, uint32_t span, enum cost_direction d);

/* The same as an index into cost[], which may move when this is called. */
uint32_t costs_index_of_span(struct costs *c, const struct profile *p, uint32_t span, enum cost_direction d);

/* Whether models of the classes `inside` (a bit each) take the place of the model `outer` around them. */
bool costs_counts_inside(const struct cost *outer, uint32_t inside);

/* Index into cost[], which may move, of the cost of a kernel of which only the name is known (string id): FLOPs and bytes are unknown, `params` is
 * the name. */
uint32_t costs_index_of_name(struct costs *c, const struct profile *p, uint32_t kernel_name, enum op_class class, enum dtype t);

/* What cost[index] is the cost of; not of one by name. */
struct op_facts costs_facts(const struct costs *c, const struct profile *p, uint32_t index, enum cost_direction *d);

#endif
