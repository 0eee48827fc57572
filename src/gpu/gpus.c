#include "gpu/gpus.h"

#include <ctype.h>

const char *const gpu_dtype_name[GPU_DTYPES] = {
	[GPU_FP32] = "float32", [GPU_TF32] = "TF32", [GPU_FP16] = "float16", [GPU_BF16] = "bfloat16", [GPU_FP8] = "FP8",
	[GPU_FP6] = "FP6", [GPU_FP4] = "FP4", [GPU_INT8] = "int8", [GPU_FP32_TENSOR] = "float32", [GPU_FP64_TENSOR] = "float64",
	[GPU_FP64] = "float64", [GPU_FP16_CORES] = "float16", [GPU_BF16_CORES] = "bfloat16",
};

#define RATE_(id, tflops) [GPU_##id] = (tflops) * 1e12
#define FP64(x) RATE_(FP64, x)
#define FP64_TENSOR(x) RATE_(FP64_TENSOR, x)
#define FP32(x) RATE_(FP32, x)
#define FP32_TENSOR(x) RATE_(FP32_TENSOR, x)
#define TF32(x) RATE_(TF32, x)
#define FP16_CORES(x) RATE_(FP16_CORES, x)
#define FP16(x) RATE_(FP16, x)
#define BF16_CORES(x) RATE_(BF16_CORES, x)
#define BF16(x) RATE_(BF16, x)
#define FP8(x) RATE_(FP8, x)
#define FP6(x) RATE_(FP6, x)
#define FP4(x) RATE_(FP4, x)
#define INT8(x) RATE_(INT8, x)
#define DENSE(...) .flops = {__VA_ARGS__}
#define SPARSE(...) .sparse = {__VA_ARGS__}
#define DOUBLE .doubled = true
#define NONE .doubled = false
#define GPU(name_, cc, bandwidth, dense, sparse, source_) \
	{.name = name_, .cc_major = (cc) / 10, .cc_minor = (cc) % 10, dense, sparse, .bytes_per_s = (bandwidth) * 1e9, .source = source_},

static const struct gpu gpus[] = {
#include "base/search.h"
#include "gpu/gpus.def"
};

/* Which rates a type's products can run at; -1 = that type does not run there. */
static const struct type_rate {
	const char *prefix; /* of dtype_name */
	int cores, tensor;
} type_rates[] = {
	{"float64", GPU_FP64, GPU_FP64_TENSOR}, {"float32", GPU_FP32, GPU_TF32}, {"float16", GPU_FP16_CORES, GPU_FP16},
	{"bfloat16", GPU_BF16_CORES, GPU_BF16}, {"float8", -1, GPU_FP8},         {"float6", -1, GPU_FP6},
	{"float4", -1, GPU_FP4},                {"int8", -1, GPU_INT8},          {"uint8", -1, GPU_INT8},
};

static const struct gpu_link gpu_links[] = {
#define LINK(gpu_, link, bandwidth, source_) {.gpu = gpu_, .name = link, .bytes_per_s = (bandwidth) * 1e9, .source = source_},
#include "gpu/links.def"
#undef LINK
};

/* Whole words: "GH200" does not end in "H200". */
static bool ends_in_words(struct str s, struct str words)
{
	return str_ends(s, words) && (s.n == words.n || !isalnum((unsigned char)s.p[s.n - words.n - 1]));
}

const struct gpu *gpu_find(struct str product)
{
	return ELEMENT_WHERE(i, gpus, sizeof gpus / sizeof *gpus, ends_in_words(product, str_from(gpus[i].name)));
}

static const struct gpu_size {
	const char *name;          /* of its row in gpus.def */
	int cc, sm_count;
	int64_t memory_bytes;      /* a driver keeps some to itself */
} gpu_sizes[] = {
#define SIZE(name_, cc_, sms, gib) {.name = name_, .cc = cc_, .sm_count = sms, .memory_bytes = (int64_t)(gib) << 30},
#include "gpu/sizes.def"
#undef SIZE
};

/* Of the memory that a product has, the least that a driver leaves. */
static const double SIZE_LEFT = 0.9;

const struct gpu *gpu_find_by_size(int cc_major, int cc_minor, int sm_count, int64_t memory_bytes)
{
	const struct gpu_size *s = ELEMENT_WHERE(i, gpu_sizes, sizeof gpu_sizes / sizeof *gpu_sizes, gpu_sizes[i].cc == cc_major * 10 + cc_minor &&
	                                         gpu_sizes[i].sm_count == sm_count && gpu_sizes[i].memory_bytes >= memory_bytes &&
	                                         SIZE_LEFT * (double)gpu_sizes[i].memory_bytes <= (double)memory_bytes);
	return s ? gpu_find(str_from(s->name)) : NULL;
}

const struct gpu_link *gpu_link_find(struct str product)
{
	return ELEMENT_WHERE(i, gpu_links, sizeof gpu_links / sizeof *gpu_links, ends_in_words(product, str_from(gpu_links[i].gpu)));
}

const struct gpu *gpu_at(unsigned i)
{
	return i < sizeof gpus / sizeof *gpus ? &gpus[i] : NULL;
}

int gpu_rate_of(const struct gpu *g, enum dtype t, enum tri tensor_core)
{
	if (tensor_core == TRI_UNKNOWN || t <= DTYPE_UNKNOWN || t >= DTYPES)
		return -1;
	struct str name = str_from(dtype_name(t));
	for (size_t i = 0; i < sizeof type_rates / sizeof *type_rates; i++) {
		if (!str_starts(name, str_from(type_rates[i].prefix)))
			continue;
		int rate = tensor_core == TRI_YES ? type_rates[i].tensor : type_rates[i].cores;
		return rate == GPU_TF32 && g->flops[GPU_FP32_TENSOR] > 0 ? GPU_FP32_TENSOR : rate;
	}
	return -1;
}

double gpu_peak_flops(const struct gpu *g, enum dtype t, enum tri tensor_core, bool sparse)
{
	int rate = g ? gpu_rate_of(g, t, tensor_core) : -1;
	if (rate < 0)
		return 0;
	if (!sparse)
		return g->flops[rate];
	if (g->doubled && rate >= GPU_TF32 && rate <= GPU_INT8)
		return 2 * g->flops[rate];
	return g->sparse[rate];
}

const char *gpu_peak_name(const struct gpu *g, enum dtype t, enum tri tensor_core)
{
	static const char *const names[GPU_DTYPES] = {
		[GPU_FP32] = "float32 on ordinary cores",       [GPU_TF32] = "TF32 on Tensor Cores",
		[GPU_FP16] = "float16 on Tensor Cores",         [GPU_BF16] = "bfloat16 on Tensor Cores",
		[GPU_FP8] = "FP8 on Tensor Cores",              [GPU_FP6] = "FP6 on Tensor Cores",
		[GPU_FP4] = "FP4 on Tensor Cores",              [GPU_INT8] = "int8 on Tensor Cores",
		[GPU_FP32_TENSOR] = "float32 on matrix cores",  [GPU_FP64_TENSOR] = "float64 on Tensor Cores",
		[GPU_FP64] = "float64 on ordinary cores",       [GPU_FP16_CORES] = "float16 on ordinary cores",
		[GPU_BF16_CORES] = "bfloat16 on ordinary cores",
	};
	int rate = g ? gpu_rate_of(g, t, tensor_core) : -1;
	return rate < 0 ? "" : names[rate];
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
	for (int k = GPU_FP32 + 1; g && k <= GPU_FP8; k++)
		if (g->flops[k] > 0)
			types |= 1 << k;
	return g ? types : -1;
}

/* Turing boards with the TU116 or TU117, which have no Tensor Cores. */
static const char *const turing_without[] = {"GTX 16", "MX450", "MX550", "T400", "T500", "T550", "T600", "T1000", "T1200", "T2000"};

int gpu_tensor_types(struct str product, int cc_major, int cc_minor, int warp_size)
{
	int cc = cc_major * 10 + cc_minor;
	if (cc_major < 0)
		return -1;
	if (gpu_is_amd(product, warp_size))
		return amd_tensor_types(product, cc_major, cc_minor);
	if (cc < 70)
		return 0;
	for (size_t i = 0; cc == 75 && i < sizeof turing_without / sizeof *turing_without; i++)
		if (str_has(product, str_from(turing_without[i])))
			return 0;
	int types = 1 << GPU_FP16;
	if (cc >= 80)
		types |= 1 << GPU_BF16 | 1 << GPU_TF32;
	if (cc >= 89)
		types |= 1 << GPU_FP8;
	return types;
}
