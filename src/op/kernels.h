/* What a kernel is, by its name: rows of kernels.def. "Unknown" is an answer of its own. */
#ifndef OPSCOPE_OP_KERNELS_H
#define OPSCOPE_OP_KERNELS_H

#include "base/str.h"
#include "op/dtype.h"
#include "op/user_rules.h"

/* X(id, name that reports show) */
#define KERNEL_CLASSES(X)                                                                                           \
	X(UNKNOWN, "unknown") X(GEMM, "gemm") X(CONV, "conv") X(ATTENTION, "attention") X(NORM, "norm") X(SOFTMAX, "softmax")      \
	X(ELEMENTWISE, "elementwise") X(REDUCE, "reduce") X(COPY, "copy") X(EMBEDDING, "embedding") X(POOL, "pool")                \
	X(RNN, "rnn") X(OPTIMIZER, "optimizer") X(SORT, "sort") X(RANDOM, "random") X(COMM, "communication") X(TRITON, "triton")   \
	X(GRAPH, "graph") X(OTHER, "other")

enum kernel_class {
#define KERNEL_CLASS_ID_(id, name) KERNEL_##id,
	KERNEL_CLASSES(KERNEL_CLASS_ID_)
};
extern const char *const kernel_class_name[];

enum tri { TRI_NO, TRI_YES, TRI_UNKNOWN };
extern const char *const tri_name[]; /* "no", "yes", "unknown" */

struct kernel_info {
	enum kernel_class class;
	enum tri tensor_core;
	enum dtype dtype;     /* of the operands of a product (gemm, conv, attention); DTYPE_UNKNOWN where the name does not tell. A
	                       * float32 product on Tensor Cores is one in TF32 */
	const char *arch;     /* what it was built for: "sm80", "gfx942"; "" = the name does not tell */
	bool fewer;           /* a convolution by an algorithm with fewer operations than its definition has: Winograd, FFT */
	bool sparse;          /* a product with 2:4 structured sparsity */
	bool dot;             /* a compiler's dot product (Triton, XLA): where the name states no type, tensor_core is unknown and kernel_tensor_core may know */
};

/* By the first row that matches, of the user's rules (NULL = none) or kernels.def. Some microseconds: the names pass asks once for each name
 * (analysis/names/names.h). */
struct kernel_info kernel_classify(struct str name, const struct user_rules *user);
/* Whether it used Tensor Cores, given the type of the operands that the op that launched it had: a dot product of operands of 16
 * bits or fewer does; of wider ones it depends on settings that no trace has. */
enum tri kernel_tensor_core(struct kernel_info k, enum dtype operands);
/* Any of a fixed list of substrings, by which older tools told Tensor Core use. */
bool kernel_uses_tc_listed(struct str name);
/* The function's own name in a C++ signature, as Nsight Systems shortens it: "f" of "void ns::f<int, (bool)1>(int)". A slice. */
struct str kernel_function_name(struct str name);
/* Ops that could use Tensor Cores by name: a list of older tools, and that with aten::convolution_backward and ops in place that the list forgets. */
bool op_tc_eligible_listed(struct str name);
bool op_tc_eligible(struct str name);
/* A collective, by the name of an op or annotation (nccl:*, gloo:*, c10d::*, torch.distributed.all_reduce and its like). */
bool op_is_comm(struct str name);

#endif
