/* Attention that is written out: a product that makes scores, a softmax of them and a product that takes them, as kernels of their own.
 *
 * Found in the order of one stream, by sizes: C[b][q][k] = A[b][q][d] B[b][d][k], then a softmax (a kernel of one, or an exponential with a
 * sum), then a product with the same b and q whose sums are k long. A kernel between them that works on as many elements as there are scores
 * (scale, mask, dropout, change of type) belongs to the attention. Backward, around the kernel of a softmax's backward: before it the product that makes the
 * gradient of the scores, behind it a product that takes the gradient of the softmax's input, and the two products that give the gradients of V and K.
 * Without shapes nothing is found. */
#ifndef OPSCOPE_DETECT_PARTS_ATTENTION_CHAINS_H
#define OPSCOPE_DETECT_PARTS_ATTENTION_CHAINS_H

#include "analysis/time/bounds.h"
#include "detect/parts/shared.h"

struct attention {
	int64_t b, q, k, d, dv;  /* heads x batch, queries, keys, sizes of a head */
	enum dtype dtype;        /* DTYPE_UNKNOWN */
	bool backward;
	bool masked;             /* something is added to the scores or masks them: half of the pairs may not count */
	uint32_t op;             /* of the first product (row in span) */
	uint32_t gpu;            /* of the first product (row of gpu_op) */
	uint32_t kernels;
	int64_t ns;
	double least_ns;         /* of one fused kernel: both products' FLOPs (backward: five products', as the scores are computed again; half
	                          * of them where `masked`) at the peak of the cores that the first product used; or the bytes of Q, K, V and
	                          * the result (backward: and of their gradients) at the bandwidth. NAN = not known */
};

struct attentions {
	struct attention *v;
	uint32_t n, cap;
	uint8_t *member;         /* by gpu_op: 1 = a kernel of an attention */
	int64_t ns;              /* of all */
	int64_t device_ns;       /* of all device work in the window except collectives, whose time includes waiting */
	int64_t unsized_ns;      /* kernels of softmax next to products whose sizes are not known */
	uint64_t kernels;
	bool least_known;        /* least_ns of each is known */
};

/* The attentions in the steps; without steps, in the whole recording. O(n). Detectors ask shared_attentions. */
struct attentions *attentions_new(const struct profile *p, struct findings *f);
void attentions_free(struct attentions *a);

/* Whether attention takes so much that unfused-attention tells it. Then other findings about the same kernels are aspects of that finding. */
bool attentions_matter(const struct attentions *a);

#endif
