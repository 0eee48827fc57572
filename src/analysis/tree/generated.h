/* Kernels that Inductor, the compiler of torch.compile, generated. */
#ifndef OPSCOPE_ANALYSIS_TREE_GENERATED_H
#define OPSCOPE_ANALYSIS_TREE_GENERATED_H

#include "op/inductor_name.h"
#include "store/profile.h"

struct generated_kernel {
	struct inductor_name name; /* by the op that launched the kernel, else by the device's record */
	bool is_inductors;         /* else the user wrote it in Triton, and Inductor wrote the launch */
	uint32_t op;               /* the op that stands for this kernel alone; ROW_NONE = none does, as where one op launches a whole CUDA graph */
};

/* Whether device work g is such a kernel; if so, fills *out. Needs PASS_CORRELATE. */
bool generated_kernel_of(const struct profile *p, uint32_t g, struct generated_kernel *out);

#endif
