/* Short names of kernels for people: what the function is called and what it does, without return type, name spaces, parameters and the
 * noise of templates. */
#ifndef OPSCOPE_OP_SHORT_NAME_H
#define OPSCOPE_OP_SHORT_NAME_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends the short form of one name:
 * "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(...)" is "elementwise<CUDAFunctor_add>";
 * a product of matrices by a library that spells its settings out is library, kind, type, tile and architecture ("cutlass gemm bf16 128x256x64
 * sm80"). Names that are no C++ stay as they are, those of Triton and Inductor too. Never appends nothing for a name that has a character. */
void kernel_short_name(struct buf *out, struct str name);

/* out[i] = the short form of full[i], for i < n, all distinct where the full names are: where two would be the same, what tells the full
 * names apart is appended ("elementwise<CUDAFunctor_add> float"), operand types first, then words, then numbers, and where nothing is left
 * " #2". In *a. Which name gets what depends on the set of names alone, not on their order. */
void kernel_short_names(struct arena *a, const struct str *full, uint32_t n, struct str *out);

#endif
