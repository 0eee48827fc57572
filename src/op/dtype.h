/* Element types, by every name that a tool gives them: torch ("c10::BFloat16", "float", "torch.float8_e4m3fn"), PyProf
 * ("float16", "half"), NCCL, Triton ("*bf16"). Rows of dtypes.def. */
#ifndef OPSCOPE_OP_DTYPE_H
#define OPSCOPE_OP_DTYPE_H

#include "base/str.h"

enum dtype {
	DTYPE_UNKNOWN,
#define DTYPE(id, ...) DTYPE_##id,
#include "op/dtypes.def"
#undef DTYPE
	DTYPES
};

enum dtype dtype_find(struct str name);
const char *dtype_name(enum dtype t);  /* as PyTorch says it without "torch.": "bfloat16"; "unknown" */
int dtype_bits(enum dtype t);          /* per element; 0 = unknown. Bytes of n elements: (n * bits + 7) / 8 */

#endif
