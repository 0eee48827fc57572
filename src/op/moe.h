/* The sizes of a mixture of experts; what they mean stands at the head of moe.c. */
#ifndef OPSCOPE_OP_MOE_H
#define OPSCOPE_OP_MOE_H

#include "op/dtype.h"

#include <stdint.h>

/* Sizes of a call; COST_UNKNOWN where they do not fit 64 bits. */
struct moe {
	int64_t tokens, top_k, experts, hidden, up_rows, inner; /* t, k, e, h, n, i */
	int64_t up_bytes, down_bytes;     /* weights of one expert */
	int64_t input_bytes, output_bytes; /* without weights */
	enum dtype type;                  /* in which the products are computed */
};

#endif
