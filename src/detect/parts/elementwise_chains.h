/* Kernels that only pass data through, one after the other on a stream, each reading what one before it wrote: what a compiler would make one
 * kernel of (RMSNorm, rotary embedding, SwiGLU, bias + gelu + dropout).
 *
 * No trace says which tensor a kernel reads. By order and sizes: an op belongs to a chain when one of its operands has as many elements, of as
 * many bits, as the result of one of the last ops of the chain. A product, a normalisation, an attention and whatever has no model
 * ends a chain; a product that cannot have read the last result (none of its operands has that size) does not: a compiler moves the rest past
 * it. Not looked at: kernels of Triton, which are fused already; the optimizer and the accumulation of gradients, which work parameter by parameter;
 * collectives; written-out attention (attention_chains.h). */
#ifndef OPSCOPE_DETECT_PARTS_ELEMENTWISE_CHAINS_H
#define OPSCOPE_DETECT_PARTS_ELEMENTWISE_CHAINS_H

#include "detect/parts/shared.h"

enum { CHAIN_LONGEST = 32 }; /* kernels; a longer one is cut */

struct chain {
	uint32_t first;          /* in chains.gpu: its kernels in order of time */
	uint32_t n;
	int64_t ns;
	int64_t bytes;           /* read and written by all its kernels */
	int64_t least_bytes;     /* the operands of the first and the result of the last, once */
	double least_ns;         /* time of least_bytes at the GPU's bandwidth; NAN = not known */
};

struct chains {
	struct chain *v;
	uint32_t n, cap;
	uint32_t *gpu;           /* rows of gpu_op */
	uint32_t n_gpu;
	int64_t ns, above_ns;    /* ns of all chains; above_ns: above their least time, and all time of chains whose least is not known */
	int64_t bytes, least_bytes;
	int64_t device_ns;       /* of all device work in the window except collectives */
	int64_t passing_ns;      /* of all kernels that only pass data through, in chains or not */
	int64_t unsized_ns;      /* of elementwise kernels whose op or shapes are not known */
	bool least_known;
};

/* The chains in the steps; without steps, in the whole recording. Free with chains_free. O(n). */
struct chains *chains_new(const struct profile *p, struct findings *f);
void chains_free(struct chains *c);

#endif
