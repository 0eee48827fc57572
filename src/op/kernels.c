#include "op/kernels.h"

#include "base/search.h"
#include "op/comm_kind.h"
#include "op/user_rules_work.h"

const char *const tri_name[] = {[TRI_NO] = "no", [TRI_YES] = "yes", [TRI_UNKNOWN] = "unknown"};

const char *const kernel_class_name[] = {
#define CLASS_NAME(id, name) [KERNEL_##id] = name,
	KERNEL_CLASSES(CLASS_NAME)
};

/* The lists of kernels.def, each from its rows alone. */
#define NOTHING(...)
#define KERNEL NOTHING
#define TC_WORD NOTHING
#define TYPE_WORD NOTHING
#define ARCH_WORD NOTHING
#define SPARSE_WORD NOTHING
#define FEWER_WORD NOTHING

static const struct kernel_row rows[] = {
#undef KERNEL
#define KERNEL(pattern, class, tc) {pattern, KERNEL_##class, TC_##tc},
#include "op/kernels.def"
#undef KERNEL
#define KERNEL NOTHING
};

static const struct tc_word {
	const char *word;
	enum tri answer;
} tc_words[] = {
#undef TC_WORD
#define TC_WORD(word, tc) {word, TRI_##tc},
#include "op/kernels.def"
#undef TC_WORD
#define TC_WORD NOTHING
};

static const struct text_row {
	const char *pattern, *text;
} type_words[] = {
#undef TYPE_WORD
#define TYPE_WORD(pattern, type) {pattern, type},
#include "op/kernels.def"
#undef TYPE_WORD
#define TYPE_WORD NOTHING
}, arch_words[] = {
#undef ARCH_WORD
#define ARCH_WORD(word, arch) {word, arch},
#include "op/kernels.def"
#undef ARCH_WORD
#define ARCH_WORD NOTHING
};

static const char *const sparse_words[] = {
#undef SPARSE_WORD
#define SPARSE_WORD(word) word,
#include "op/kernels.def"
#undef SPARSE_WORD
#define SPARSE_WORD NOTHING
};

static const char *const fewer_words[] = {
#undef FEWER_WORD
#define FEWER_WORD(word) word,
#include "op/kernels.def"
};

/* What older tools took for Tensor Core use. */
static const char *const tc_substrings[] = {
	"h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
	"conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
	"xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
};

static bool any_of(struct str name, const char *const *list, size_t n)
{
	return ANY_WHERE(i, 0, n, str_has(name, str_from(list[i])));
}
#define ANY_OF(name, list) any_of((name), (list), sizeof(list) / sizeof((list)[0]))

/* Which pairs of neighbouring bytes a name has, so that most patterns are ruled out by looking at two bytes of them. */
struct kernels_pairs {
	uint64_t bits[1 << 6];
};

static inline unsigned pair_bit(const char *p)
{
	return (((unsigned char)p[0] & 63) << 6) | ((unsigned char)p[1] & 63);
}

static void pairs_of(struct kernels_pairs *s, struct str name)
{
	memset(s, 0, sizeof *s);
	for (size_t i = 0; i + 1 < name.n; i++) {
		unsigned b = pair_bit(name.p + i);
		s->bits[b >> 6] |= 1ull << (b & 63);
	}
}

/* False when the pattern cannot be in the name. */
static bool may_match(const char *pattern, const struct kernels_pairs *s)
{
	const char *p = pattern + (*pattern == '^');
	for (; p[0] && p[1]; p++) {
		unsigned b = pair_bit(p);
		if (p[0] != '*' && p[1] != '*' && !(s->bits[b >> 6] >> (b & 63) & 1))
			return false;
	}
	return true;
}

static bool kernels_matches(const char *pattern, struct str name, const struct kernels_pairs *s)
{
	struct str rest = str_from(pattern), piece;
	bool tied = rest.n && rest.p[0] == '^';
	if (!may_match(pattern, s))
		return false;
	if (tied)
		rest.p++, rest.n--;
	while (str_split(&rest, '*', &piece)) {
		if (tied && !str_starts(name, piece))
			return false;
		ptrdiff_t at = tied ? 0 : str_find(name, piece);
		if (at < 0)
			return false;
		tied = false;
		name.p += (size_t)at + piece.n;
		name.n -= (size_t)at + piece.n;
	}
	return true;
}

static enum tri tensor_core_by_word(struct str name, const struct kernels_pairs *s)
{
	for (size_t i = 0; i < sizeof tc_words / sizeof tc_words[0]; i++)
		if (kernels_matches(tc_words[i].word, name, s))
			return tc_words[i].answer;
	return TRI_UNKNOWN;
}

static enum tri tensor_core(enum tc_rule rule, struct str name, const struct kernels_pairs *s)
{
	static const enum tri fixed[] = {[TC_NO] = TRI_NO, [TC_YES] = TRI_YES, [TC_UNKNOWN] = TRI_UNKNOWN, [TC_UNKNOWN_BY_DOT] = TRI_UNKNOWN};
	return rule == TC_UNKNOWN_BY_MMA ? tensor_core_by_word(name, s) : fixed[rule];
}

/* The text of the first row that matches; "" = none. */
static const char *kernels_text_of(const struct text_row *list, size_t n, struct str name, const struct kernels_pairs *s)
{
	for (size_t i = 0; i < n; i++)
		if (kernels_matches(list[i].pattern, name, s))
			return list[i].text;
	return "";
}
#define TEXT_OF(list, name, s) kernels_text_of((list), sizeof(list) / sizeof((list)[0]), (name), (s))

static const struct kernel_row *kernels_row_of(struct str name, const struct user_rules *user, const struct kernels_pairs *s)
{
	for (size_t i = 0; user && i < user->n_kernels; i++)
		if (kernels_matches(user->kernel[i].pattern, name, s))
			return &user->kernel[i];
	return ELEMENT_WHERE(i, rows, sizeof rows / sizeof rows[0], kernels_matches(rows[i].pattern, name, s));
}

struct kernel_info kernel_classify(struct str name, const struct user_rules *user)
{
	struct kernels_pairs s;
	pairs_of(&s, name);
	const struct kernel_row *row = kernels_row_of(name, user, &s);
	struct kernel_info k = {.class = KERNEL_UNKNOWN, .arch = ""};
	if (!row) {
		k.tensor_core = tensor_core_by_word(name, &s);
		return k;
	}
	k.class = row->class;
	k.tensor_core = tensor_core(row->rule, name, &s);
	k.dot = row->rule == TC_UNKNOWN_BY_DOT;
	if (k.class == KERNEL_GEMM || k.class == KERNEL_CONV || k.class == KERNEL_ATTENTION) {
		k.dtype = dtype_find(str_from(TEXT_OF(type_words, name, &s)));
		k.arch = TEXT_OF(arch_words, name, &s);
		k.sparse = ANY_OF(name, sparse_words);
		k.fewer = ANY_OF(name, fewer_words);
	}
	k.tensor_core = kernel_tensor_core(k, k.dtype);
	return k;
}

enum tri kernel_tensor_core(struct kernel_info k, enum dtype operands)
{
	if (!k.dot || k.tensor_core != TRI_UNKNOWN || operands <= DTYPE_UNKNOWN || operands >= DTYPES)
		return k.tensor_core;
	return dtype_bits(operands) <= 16 ? TRI_YES : TRI_UNKNOWN;
}

bool kernel_uses_tc_listed(struct str name)
{
	return ANY_OF(name, tc_substrings);
}

struct str kernel_function_name(struct str name)
{
	static const char *const nameless[] = {"<unnamed>::", "(anonymous namespace)::"};
	size_t start = 0, i = 0;
	while (i < name.n) {
		struct str rest = {name.p + i, name.n - i};
		size_t skip = 0;
		for (int k = 0; k < 2; k++)
			if (str_starts(rest, str_from(nameless[k])))
				skip = strlen(nameless[k]);
		if (str_starts(rest, STR("::")))
			skip = 2;
		if (skip)
			start = i + skip;
		else if ((name.p[i] == '<' || name.p[i] == '(') && i > start)
			break;
		else if (name.p[i] == ' ')
			start = i + 1;
		i += skip ? skip : 1;
	}
	return start < i ? (struct str){name.p + start, i - start} : name;
}

bool op_tc_eligible_listed(struct str name)
{
	static const char *const aten[] = {
		"_convolution", "_convolution_nogroup", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
		"conv_transpose3d", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "prelu", "addmm",
		"addmm_", "addmv", "addr", "matmul", "mm", "mv", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot",
		"_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
		"cudnn_convolution_backward", "cudnn_convolution_transpose_backward", "cudnn_convolution_backward_weight",
		"cudnn_convolution_transpose_backward_weight", "cudnn_convolution_backward_input",
		"cudnn_convolution_transpose_backward_input",
	};
	static const char *const nodes[] = {
		"CudnnConvolutionBackward", "CudnnConvolutionTransposeBackward", "BmmBackward0", "MmBackward", "AddmvBackward",
		"MvBackward", "AddmmBackward", "AddbmmBackward",
	};
	struct str tail = {name.p + 6, name.n - 6};
	return str_starts(name, STR("aten::")) ? STR_IN(tail, aten) : STR_IN(name, nodes);
}

bool op_tc_eligible(struct str name)
{
	static const char *const more[] = {
		"aten::addmv_", "aten::addr_", "aten::addbmm_", "aten::baddbmm_", "aten::convolution_backward",
	};
	return op_tc_eligible_listed(name) || STR_IN(name, more);
}

bool op_is_comm(struct str name)
{
	static const char *const prefixes[] = {"nccl:", "gloo:", "c10d::", "mpi:", "ucc:", "record_param_comms", "_c10d_functional::"};
	/* Of Python's functions those alone that name a collective: neither "torch.distributed.get_rank" nor, of DDP's C++, what stands in a place of its own:
	 * "torch.distributed.ddp.reducer::copy_bucket_to_grad". */
	if (str_skip(&name, STR("torch.distributed.")))
		return !str_has(name, STR(".")) && !str_has(name, STR(":")) && comm_kind_of(name) != COMM_UNKNOWN;
	return ANY_WHERE(i, 0, sizeof prefixes / sizeof prefixes[0], str_starts(name, str_from(prefixes[i])));
}
