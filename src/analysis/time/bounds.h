/* The least time that device work can take on its GPU: the one answer for the reports on costs and for every finding that bounds its gain by
 * it. Of FLOPs and bytes that a model gives (analysis/costs/costs.h), in ns, at the peaks of the GPU that did the work (gpu/gpus.h):
 *   compute = FLOPs / peak of the type, on the cores that the kernel used; on Tensor Cores also where it did not use them but type and
 *             shape would allow it. Ops that multiply no matrices: types up to 16 bits compute as float32
 *   memory  = bytes / bandwidth of the device memory
 *   least   = the longer of both; unknown where one of them is. FLOPs of 0 take no time; of ops that multiply no matrices and whose FLOPs
 *             or rate are unknown, memory alone counts. Collectives and copies by the copy engines have none: no peak of one GPU bounds them */
#ifndef OPSCOPE_ANALYSIS_TIME_BOUNDS_H
#define OPSCOPE_ANALYSIS_TIME_BOUNDS_H

#include "analysis/costs/costs.h"
#include "gpu/gpus.h"

#include <math.h>

struct bounds;

struct bound {
	const struct gpu *gpu;   /* NULL = what the GPU can do is not known */
	enum tri tensor_core;    /* did the kernel use them */
	double peak_flops;       /* that of `compute`, FLOP/s; 0 = not known */
	const char *peak_name;   /* "" = not known */
	double compute_ns, memory_ns, least_ns; /* NAN = not known */
};

/* Which cores the peak is of. */
enum bound_cores {
	BOUND_BEST,              /* as above */
	BOUND_AS_RUN,            /* those that the kernel used, where its name tells */
};

/* Free with bounds_free. Needs no pass. */
struct bounds *bounds_new(const struct profile *p);
void bounds_free(struct bounds *b);

/* The GPU that did this work (row of gpu_op); NULL = not known. */
const struct gpu *bounds_gpu(struct bounds *b, uint32_t gpu);

/* Of an op of this model with so many FLOPs and bytes (COST_UNKNOWN), whose main kernel is row `gpu` of gpu_op. */
struct bound bounds_of(struct bounds *b, const struct cost *c, int64_t flops, int64_t bytes, uint32_t gpu, enum bound_cores cores);
/* Whether row `gpu` of gpu_op, which does work of the model *c, used Tensor Cores: as costs/tc_used.h says, else by the model's type, which a backward has
 * from its forward op. */
enum tri bounds_tensor_core(const struct profile *p, const struct cost *c, uint32_t gpu);
/* Of what kernel `gpu` carries of its op's FLOPs and bytes: 0 for one that carries none. The sum over the kernels of an op is its least time. */
double bounds_least_ns(struct bounds *b, const struct costs *c, uint32_t gpu);
/* The same were the op done with operands of type `t` on Tensor Cores: FLOPs at that peak, and bytes by its size. */
double bounds_least_ns_as(struct bounds *b, const struct costs *c, uint32_t gpu, enum dtype t);

/* What is above the least time of work that took `ns`; all of it where the least is not known (NaN). */
static inline int64_t bounds_above_ns(int64_t ns, double least_ns)
{
	return isnan(least_ns) ? ns : least_ns < (double)ns ? ns - (int64_t)least_ns : 0;
}

/* What is known of the GPUs that were asked for: for notes. */
struct bounds_gpus {
	struct str name;         /* as the input has it, of the first device that was asked for, or as the list has it; "" = not stated */
	bool by_size;            /* the input does not name that device: its size tells */
	bool known;              /* one that was asked for is in the list of GPUs */
	int32_t assumed;         /* a device with work that the input does not describe: taken for one of those that it does, which are all of
	                          * one name; INT32_MIN = none */
};
struct bounds_gpus bounds_gpus(const struct bounds *b);

/* Whether row `gpu` of gpu_op is a kernel of so few blocks that it can come near no peak, however long it takes: fewer than one for each BOUNDS_SMALL_SMS SMs.
 * A block runs on one SM, and an SM has its share of the FLOP/s, and can load from memory only a few times its share of the bandwidth. False where blocks
 * or SMs are not known. */
enum { BOUNDS_SMALL_SMS = 10 };
bool bounds_is_small(const struct profile *p, uint32_t gpu);

/* Whether an op of this class multiplies matrices. */
static inline bool bounds_multiplies(enum op_class class)
{
	return class == OP_GEMM || class == OP_CONV || class == OP_ATTENTION || class == OP_RNN;
}

#endif
