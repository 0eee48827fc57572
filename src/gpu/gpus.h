/* What a GPU can do: rows of gpus.def, and what follows from the compute capability. "Not known" is an answer of its own. */
#ifndef OPSCOPE_GPU_GPUS_H
#define OPSCOPE_GPU_GPUS_H

#include "base/str.h"
#include "op/dtype.h"
#include "op/kernels.h"

/* Rates. fp32, fp64 and those named _CORES: on ordinary (CUDA, vector) cores; the others on Tensor Cores, which AMD calls
 * matrix cores. Those to GPU_FP8 are the types that models are trained in. */
enum gpu_dtype {
	GPU_FP32, GPU_TF32, GPU_FP16, GPU_BF16, GPU_FP8, GPU_FP6, GPU_FP4, GPU_INT8, GPU_FP32_TENSOR, GPU_FP64_TENSOR, GPU_FP64,
	GPU_FP16_CORES, GPU_BF16_CORES,
	GPU_DTYPES
};
extern const char *const gpu_dtype_name[GPU_DTYPES]; /* as PyTorch says it: "float32", "TF32", "bfloat16" */

struct gpu {
	const char *name;          /* the end of the product name */
	int cc_major, cc_minor;
	double flops[GPU_DTYPES];  /* dense peak, FLOP/s (or integer operations); accumulating in fp32 where that is slower; 0 = not
	                            * known, or not a type that it multiplies that way */
	double sparse[GPU_DTYPES]; /* the same with 2:4 structured sparsity, where it is stated on its own */
	bool doubled;              /* 2:4 sparsity doubles every dense rate of Tensor Cores from TF32 to int8 */
	double bytes_per_s;        /* of the device memory; 0 = not known */
	const char *source;        /* which publication the row was compared with; "" = with none: shown as unverified */
};

/* By product name, "NVIDIA A100-SXM4-80GB"; NULL = not in the list. */
const struct gpu *gpu_find(struct str product);

/* By what a recording says of a device that it does not name: compute capability, SMs (compute units) and bytes of memory. NULL = these fit no product of
 * the list of sizes, or several. */
const struct gpu *gpu_find_by_size(int cc_major, int cc_minor, int sm_count, int64_t memory_bytes);

/* What connects GPUs of one host: rows of links.def. What connects hosts is not known by the product. */
struct gpu_link {
	const char *gpu;           /* the end of the product name */
	const char *name;          /* "NVLink 4" */
	double bytes_per_s;        /* of all links of one GPU together, in one direction */
	const char *source;
};

/* By product name; NULL = not in the list: what connects such GPUs is not known. */
const struct gpu_link *gpu_link_find(struct str product);

/* Row i of the list; NULL beyond the last. */
const struct gpu *gpu_at(unsigned i);

static inline bool gpu_is_verified(const struct gpu *g) { return g->source[0] != '\0'; }

/* Which rate bounds products of operands of type `t`; -1 = none that is known of: the answer "unknown" to the Tensor Core
 * question, and types that no GPU multiplies.
 *   on Tensor Cores float32 runs as TF32 (AMD from CDNA on: as float32 on matrix cores, where a GPU has that and no TF32) */
int gpu_rate_of(const struct gpu *g, enum dtype t, enum tri tensor_core);
/* Peak of that rate, FLOP/s; 0 = not known (also where g is NULL): abstain. */
double gpu_peak_flops(const struct gpu *g, enum dtype t, enum tri tensor_core, bool sparse);
/* Peak of the device memory, bytes/s; 0 = not known. */
static inline double gpu_peak_bytes(const struct gpu *g) { return g ? g->bytes_per_s : 0; }
/* What a share of that peak is a share of: "bfloat16 on Tensor Cores", "float32 on ordinary cores"; "" = unknown. */
const char *gpu_peak_name(const struct gpu *g, enum dtype t, enum tri tensor_core);

/* Of AMD, whose compute capability is a gfx version: by its wavefronts of 64, or by name. */
bool gpu_is_amd(struct str product, int warp_size);

/* The types that its Tensor Cores multiply and models are trained in, as bits 1 << enum gpu_dtype; 0 = it has none, -1 = not known.
 *   NVIDIA   7.x float16; 8.x and up also bfloat16 and TF32; 8.9 and up also FP8; below 7, and Turing's smaller boards (GTX 16, T1000), none
 *   AMD      gfx94x and up float16, bfloat16, FP8; gfx90x as the list says, else not known */
int gpu_tensor_types(struct str product, int cc_major, int cc_minor, int warp_size);

#endif
