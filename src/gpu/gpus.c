#include "gpu/gpus.h"

#include <ctype.h>

const char *const gpu_dtype_name[GPU_DTYPES] = {
	[GPU_FP32] = "float32", [GPU_TF32] = "TF32", [GPU_FP16] = "float16", [GPU_BF16] = "bfloat16", [GPU_FP8] = "FP8",
};

static const struct gpu gpus[] = {
#define GPU(name, cc, fp32, tf32, fp16, bf16, fp8, bandwidth) \
	{name, (cc) / 10, (cc) % 10, {fp32 * 1e12, tf32 * 1e12, fp16 * 1e12, bf16 * 1e12, fp8 * 1e12}, bandwidth * 1e9},
#include "gpu/gpus.def"
#undef GPU
};

/* Whole words: "GH200" does not end in "H200". */
static bool ends_in_words(struct str s, struct str words)
{
	return str_ends(s, words) && (s.n == words.n || !isalnum((unsigned char)s.p[s.n - words.n - 1]));
}

const struct gpu *gpu_find(struct str product)
{
	for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
		if (ends_in_words(product, str_from(gpus[i].name)))
			return &gpus[i];
	return NULL;
}

bool gpu_is_amd(struct str product, int warp_size)
{
	return warp_size == 64 || str_has(product, STR("AMD"));
}

static int amd_tensor_types(struct str product, int cc_major, int cc_minor)
{
	const struct gpu *g = gpu_find(product);
	int types = 0;
	if (cc_major == 9 && cc_minor >= 4)
		return 1 << GPU_FP16 | 1 << GPU_BF16 | 1 << GPU_FP8;
	for (int k = GPU_FP32 + 1; g && k < GPU_DTYPES; k++)
		if (g->flops[k] > 0)
			types |= 1 << k;
	return g ? types : -1;
}

int gpu_tensor_types(struct str product, int cc_major, int cc_minor, int warp_size)
{
	int cc = cc_major * 10 + cc_minor;
	if (cc_major < 0)
		return -1;
	if (gpu_is_amd(product, warp_size))
		return amd_tensor_types(product, cc_major, cc_minor);
	if (cc < 70 || str_has(product, STR("GTX 16")))
		return 0;
	int types = 1 << GPU_FP16;
	if (cc >= 80)
		types |= 1 << GPU_BF16 | 1 << GPU_TF32;
	if (cc >= 89)
		types |= 1 << GPU_FP8;
	return types;
}
