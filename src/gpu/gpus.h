/* What a GPU can do: rows of gpus.def, and what follows from the compute capability. "Not known" is an answer of its own. */
#ifndef OPSCOPE_GPU_GPUS_H
#define OPSCOPE_GPU_GPUS_H

#include "base/str.h"

/* fp32: on ordinary cores; the others on Tensor Cores, which AMD calls matrix cores. */
enum gpu_dtype { GPU_FP32, GPU_TF32, GPU_FP16, GPU_BF16, GPU_FP8, GPU_DTYPES };
extern const char *const gpu_dtype_name[GPU_DTYPES]; /* as PyTorch says it: "float32", "TF32", "bfloat16" */

struct gpu {
	const char *name;          /* the end of the product name */
	int cc_major, cc_minor;
	double flops[GPU_DTYPES];  /* dense peak, FLOP/s; 0 = not known or not a type of its Tensor Cores */
	double bytes_per_s;        /* of the device memory; 0 = not known */
};

/* By product name, "NVIDIA A100-SXM4-80GB"; NULL = not in the list. */
const struct gpu *gpu_find(struct str product);

/* Of AMD, whose compute capability is a gfx version: by its wavefronts of 64, or by name. */
bool gpu_is_amd(struct str product, int warp_size);

/* The types that its Tensor Cores multiply, as bits 1 << enum gpu_dtype; 0 = it has none, -1 = not known.
 *   NVIDIA   7.x float16; 8.x and up also bfloat16 and TF32; 8.9 and up also FP8; below 7, and the GTX 16 series, none
 *   AMD      gfx94x and up float16, bfloat16, FP8; gfx90x as the list says, else not known */
int gpu_tensor_types(struct str product, int cc_major, int cc_minor, int warp_size);

#endif
