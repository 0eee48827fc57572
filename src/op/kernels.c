#include "op/kernels.h"

const char *const kernel_class_name[] = {
	[KERNEL_UNKNOWN] = "unknown",     [KERNEL_GEMM] = "gemm",           [KERNEL_CONV] = "conv",
	[KERNEL_ATTENTION] = "attention", [KERNEL_NORM] = "norm",           [KERNEL_SOFTMAX] = "softmax",
	[KERNEL_ELEMENTWISE] = "elementwise", [KERNEL_REDUCE] = "reduce",   [KERNEL_COPY] = "copy",
	[KERNEL_EMBEDDING] = "embedding", [KERNEL_POOL] = "pool",           [KERNEL_RNN] = "rnn",
	[KERNEL_OPTIMIZER] = "optimizer", [KERNEL_SORT] = "sort",           [KERNEL_RANDOM] = "random",
	[KERNEL_COMM] = "communication",  [KERNEL_TRITON] = "triton",       [KERNEL_OTHER] = "other",
};

/* How a row of kernels.def answers the Tensor Core question. */
enum tc_rule {
	TC_NO,
	TC_YES,
	TC_UNKNOWN,
	TC_UNKNOWN_BY_MMA,    /* by the first TC_WORD in the name; unknown without one */
	TC_UNKNOWN_BY_TRITON, /* unknown when the fused ops include a product, else no */
	TC_AMD_MFMA,          /* Tensile: the name says MI (matrix instruction) */
};

static const struct kernel_row {
	const char *pattern;
	enum kernel_class class;
	enum tc_rule rule;
} rows[] = {
#define KERNEL(pattern, class, tc) {pattern, KERNEL_##class, TC_##tc},
#define TC_WORD(word, tc)
#include "op/kernels.def"
#undef KERNEL
#undef TC_WORD
};

static const struct tc_word {
	const char *word;
	enum tri answer;
} tc_words[] = {
#define KERNEL(pattern, class, tc)
#define TC_WORD(word, tc) {word, TRI_##tc},
#include "op/kernels.def"
#undef KERNEL
#undef TC_WORD
};

/* Substrings that PyProf and the TensorBoard plugin take for Tensor Core use (PyProf's tc.py). */
static const char *const tc_substrings[] = {
	"h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
	"conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
	"xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
};

static bool any_of(struct str name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_has(name, str_from(list[i])))
			return true;
	return false;
}
#define ANY_OF(name, list) any_of((name), (list), sizeof(list) / sizeof((list)[0]))

static bool matches(const char *pattern, struct str name)
{
	struct str rest = str_from(pattern), piece;
	bool tied = rest.n && rest.p[0] == '^';
	if (tied)
		rest.p++, rest.n--;
	while (str_split(&rest, '*', &piece)) {
		ptrdiff_t at = str_find(name, piece);
		if (at < 0 || (tied && at > 0))
			return false;
		tied = false;
		name.p += (size_t)at + piece.n;
		name.n -= (size_t)at + piece.n;
	}
	return true;
}

static enum tri tensor_core_by_word(struct str name)
{
	for (size_t i = 0; i < sizeof tc_words / sizeof tc_words[0]; i++)
		if (str_has(name, str_from(tc_words[i].word)))
			return tc_words[i].answer;
	return TRI_UNKNOWN;
}

static enum tri tensor_core(enum tc_rule rule, struct str name)
{
	switch (rule) {
	case TC_NO:
		return TRI_NO;
	case TC_YES:
		return TRI_YES;
	case TC_UNKNOWN:
		return TRI_UNKNOWN;
	case TC_UNKNOWN_BY_MMA:
		return tensor_core_by_word(name);
	case TC_UNKNOWN_BY_TRITON:
		if (str_has(name, STR("mm")) || str_has(name, STR("conv")) || str_has(name, STR("dot")) ||
		    str_has(name, STR("attention")) || str_starts(name, STR("triton_tem_")))
			return TRI_UNKNOWN;
		return TRI_NO;
	case TC_AMD_MFMA:
		return str_has(name, STR("_MI")) || str_has(name, STR("MFMA")) ? TRI_YES : TRI_UNKNOWN;
	}
	return TRI_UNKNOWN;
}

struct kernel_info kernel_classify(struct str name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (matches(rows[i].pattern, name))
			return (struct kernel_info){rows[i].class, tensor_core(rows[i].rule, name)};
	return (struct kernel_info){KERNEL_UNKNOWN, tensor_core_by_word(name)};
}

bool kernel_uses_tc_compat(struct str name)
{
	return ANY_OF(name, tc_substrings);
}

bool op_tc_eligible(struct str name)
{
	static const char *const aten[] = {
		"_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
		"conv_transpose3d", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "prelu", "addmm",
		"addmm_", "addmv", "addmv_", "addr", "addr_", "matmul", "mm", "mv", "linear", "addbmm", "addbmm_", "baddbmm",
		"baddbmm_", "bmm", "chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
		"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "cudnn_convolution_backward",
		"cudnn_convolution_transpose_backward", "cudnn_convolution_backward_weight",
		"cudnn_convolution_transpose_backward_weight", "cudnn_convolution_backward_input",
		"cudnn_convolution_transpose_backward_input", "convolution_backward",
	};
	static const char *const nodes[] = {
		"CudnnConvolutionBackward", "CudnnConvolutionTransposeBackward", "BmmBackward0", "MmBackward", "AddmvBackward",
		"MvBackward", "AddmmBackward", "AddbmmBackward",
	};
	if (str_starts(name, STR("aten::"))) {
		struct str tail = {name.p + 6, name.n - 6};
		for (size_t i = 0; i < sizeof aten / sizeof aten[0]; i++)
			if (str_eqc(tail, aten[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
		if (str_eqc(name, nodes[i]))
			return true;
	return false;
}

bool kernel_is_comm(struct str name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (matches(rows[i].pattern, name))
			return rows[i].class == KERNEL_COMM;
	return false;
}

bool op_is_comm(struct str name)
{
	static const char *const prefixes[] = {"nccl:", "gloo:", "c10d::", "mpi:", "ucc:", "record_param_comms", "_c10d_functional::"};
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (str_starts(name, str_from(prefixes[i])))
			return true;
	return false;
}
