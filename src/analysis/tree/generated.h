/* Kernels that Inductor, the compiler of torch.compile, generated. */
#ifndef OPSCOPE_ANALYSIS_TREE_GENERATED_H
#define OPSCOPE_ANALYSIS_TREE_GENERATED_H

#include "op/inductor_name.h"
#include "store/profile.h"

struct generated_kernel {
	struct inductor_name name; /* by the op that launched it, else by the device's record */
	bool is_inductors;         /* else written in Triton by hand, for which Inductor wrote the launch */
	uint32_t op;               /* the op that stands for the kernel alone; ROW_NONE where the op around the launch is another one, as that of a whole CUDA graph */
};

/* False: the work is none. Needs PASS_CORRELATE. */
bool generated_kernel_of(const struct profile *p, uint32_t g, struct generated_kernel *out);

#endif
