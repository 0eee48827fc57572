/* What a kernel is, by its name: rows of kernels.def. "Unknown" is an answer of its own. */
#ifndef OPSCOPE_OP_KERNELS_H
#define OPSCOPE_OP_KERNELS_H

#include "base/str.h"

enum kernel_class {
	KERNEL_UNKNOWN, KERNEL_GEMM, KERNEL_CONV, KERNEL_ATTENTION, KERNEL_NORM, KERNEL_SOFTMAX, KERNEL_ELEMENTWISE,
	KERNEL_REDUCE, KERNEL_COPY, KERNEL_EMBEDDING, KERNEL_POOL, KERNEL_RNN, KERNEL_OPTIMIZER, KERNEL_SORT, KERNEL_RANDOM,
	KERNEL_COMM, KERNEL_TRITON, KERNEL_OTHER,
};
extern const char *const kernel_class_name[];

enum tri { TRI_NO, TRI_YES, TRI_UNKNOWN };

struct kernel_info {
	enum kernel_class class;
	enum tri tensor_core;
};

/* First matching row of kernels.def. O(rows x name length): callers cache per name. */
struct kernel_info kernel_classify(struct str name);
/* The rule of the plugin and PyProf: any of a fixed list of substrings (PyProf's tc.py, the plugin's tensor_core.py). */
bool kernel_uses_tc_compat(struct str name);
/* Ops that could use Tensor Cores by name (the plugin's tensor_core.py). */
bool op_tc_eligible(struct str name);
/* A collective, by the name of a kernel (nccl*, rccl, ...), or of an op or annotation (nccl:*, gloo:*, c10d::*). */
bool kernel_is_comm(struct str name);
bool op_is_comm(struct str name);

#endif
