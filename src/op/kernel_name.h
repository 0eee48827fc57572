/* Short names of kernels for people. */
#ifndef OPSCOPE_OP_KERNEL_NAME_H
#define OPSCOPE_OP_KERNEL_NAME_H

#include "base/buf.h"

/* Appends the function's name without return type, parameters and template arguments, and without PyTorch's and anonymous name spaces:
 * "void at::native::vectorized_elementwise_kernel<4, at::...>(int, ...)" is "vectorized_elementwise_kernel". Where the function alone
 * says nothing ("cutlass::Kernel<cutlass_80_tensorop_...>"), its first template argument stays. Names that are no C++ stay as they are. */
void kernel_short_name(struct buf *out, struct str name);

#endif
