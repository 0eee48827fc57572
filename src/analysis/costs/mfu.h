/* How much arithmetic each GPU did in each step, and which share of its peak that is (MFU, model FLOPs utilisation: Chowdhery et al.,
 * "PaLM", 2022, appendix B; here of the operations that ran, so that what is computed twice counts twice).
 *
 *   FLOPs         those of the device work of the step by analysis/costs/costs.h: each call of an op once; what is unknown counts 0
 *   achieved      FLOPs / length of the step, idle time and waiting included
 *   peak          of the type and cores that do most of the FLOPs of products (matrix products, convolutions, attention, recurrent layers)
 *   MFU           achieved / peak
 *
 * A kernel is of the step in which its op, else its call, began; where neither is known, of that in which it began itself as devices see it.
 * MFU is unknown where more than a tenth of the kernel time (collectives left out) is of products, or of kernels that may be some,
 * whose FLOPs are not known; where there are none; and where the GPU's peak is not known. `why` says which. */
#ifndef OPSCOPE_ANALYSIS_COSTS_MFU_H
#define OPSCOPE_ANALYSIS_COSTS_MFU_H

#include "analysis/time/bounds.h"

enum { MFU_TYPES = 4 };

/* A type and the cores that worked in it. */
struct mfu_type {
	enum dtype dtype;
	enum tri tensor_core;
	int64_t flops;           /* of products */
};

struct mfu_row {
	uint32_t step;           /* in steps->v; MFU_ALL: all steps together; without steps from the
	                          * first to the last device work of the recording */
	int32_t device;          /* ordinal; INT32_MIN = the input does not tell devices apart */
	int64_t ns;              /* length of the step */
	int64_t flops;           /* COST_UNKNOWN: more than fit 64 bits */
	int64_t kernel_ns;       /* sum of the durations of its kernels but collectives */
	int64_t known_ns;        /* of these, whose FLOPs are known */
	int64_t products_unknown_ns; /* of these, products or what may be some, whose FLOPs are not known */
	int64_t replays_unknown_ns; /* of these, replays of graphs whose op is not known */
	int64_t product_flops;   /* of `flops`, of products of all types; COST_UNKNOWN: more than fit 64 bits */
	struct mfu_type type[MFU_TYPES]; /* the types with most FLOPs, most first; [0].flops = 0: no products, or product_flops unknown */
	const struct gpu *gpu;   /* NULL = not known */
	double peak_flops;       /* of type[0], FLOP/s; 0 = not known */
	const char *peak_name;   /* "bfloat16 on Tensor Cores"; "" = not known */
	bool incomplete;         /* the FLOPs of products are unknown in more than a tenth of kernel_ns: achieved_flops is of what is known alone */
	double achieved_flops;   /* FLOP/s; NAN = not known: no FLOPs are */
	double mfu_pct;          /* NAN = not known */
	const char *why;         /* why MFU is not known; NULL = it is */
};

#define MFU_ALL UINT32_MAX

struct mfu {
	struct mfu_row *v;       /* by GPU in order of ordinal, in it by step, and behind them that of all steps */
	uint32_t n;
	int64_t inside_flops, outside_flops; /* of kernels in a step, on a known GPU, and of all others; both together: of all device work;
	                          * COST_UNKNOWN: more than fit 64 bits */
	bool whole;              /* there are no steps */
	bool steps_left_out;     /* too many: there are rows of all steps together alone */
};

/* Needs PASS_NEST, PASS_CORRELATE and PASS_STEPS. Only GPUs with work. O(kernels x log steps + steps x GPUs). Free with mfu_free. */
struct mfu *mfu_new(const struct profile *p);
void mfu_free(struct mfu *m);

/* Appends "bf16 on Tensor Cores 99.1 %, fp32 on ordinary cores 0.9 %". */
struct buf;
void mfu_types_text(const struct mfu_row *r, struct buf *out);

#endif
