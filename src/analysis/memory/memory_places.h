/* Where in a training step an allocation stands: which call of an op, which backward pass, the optimizer, the data loader; and
 * which gradients a backward pass made. For memory_categories.h. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_PLACES_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_PLACES_H

#include "store/profile.h"

/* A range, and what is around it (rows of span, ROW_NONE = none). */
struct memory_place {
	uint32_t call;       /* outermost op with a schema or node of autograd: torch's unit of data flow */
	uint32_t engine;     /* outermost range in which autograd runs a node */
	uint32_t optimizer;  /* Optimizer.step */
	uint32_t loader;     /* DataLoader.__next__ */
};

/* One tensor that AccumulateGrad took. */
struct memory_gradient {
	uint32_t pass;
	int64_t bytes;
};

struct memory_places {
	struct memory_place *of_span;
	uint32_t *pass;              /* of ranges that are an `engine`: the backward pass, from 0 */
	int64_t *pass_end_ns;
	uint32_t n_passes;
	struct memory_gradient *gradient; /* by pass, then bytes */
	uint32_t n_gradients;
	bool gradients_sized;        /* all calls of AccumulateGrad state shapes and types */
	uint8_t *from_host;          /* per span that is a `call`: 1 = it copied from the host to a device */
	int64_t *bytes;              /* tensor arguments of argument set i: bytes[first[i]] .. bytes[first[i + 1] - 1]; a list of
	                              * tensors counts one by one, unknown sizes are -1 */
	uint32_t *first;
};

/* Needs PASS_NEST and PASS_CORRELATE. A backward pass ends where an op outside of autograd begins. */
void memory_places_init(struct memory_places *m, const struct profile *p);
void memory_places_release(struct memory_places *m);

/* Whether the pass made a gradient for which an allocator hands out `bytes`: exactly so many, or rounded up to 512. */
bool memory_places_has_gradient(const struct memory_places *m, uint32_t pass, int64_t bytes);
/* Whether a block of `bytes` can be that of a tensor of `tensor` bytes. */
static inline bool memory_fits(int64_t bytes, int64_t tensor)
{
	return tensor > 0 && (bytes == tensor || (bytes % 512 == 0 && bytes > tensor && bytes - tensor < 512));
}

#endif
