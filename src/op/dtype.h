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

/* In the order of promotion. Quantised types take part in no promotion. */
enum dtype_kind { DTYPE_KIND_UNKNOWN, DTYPE_KIND_BOOL, DTYPE_KIND_INT, DTYPE_KIND_FLOAT, DTYPE_KIND_COMPLEX, DTYPE_KIND_QUANT };

enum dtype dtype_find(struct str name);
enum dtype dtype_of_code(int64_t code); /* torch's number of a type (c10::ScalarType), as arguments state it: 6 = float32 */
const char *dtype_name(enum dtype t);  /* as PyTorch says it without "torch.": "bfloat16"; "unknown" */
const char *dtype_short(enum dtype t); /* as PyProf says it: "bf16", "fp32"; "?" */
int dtype_bits(enum dtype t);          /* per element; 0 = unknown. Bytes of n elements: (n * bits + 7) / 8 */
enum dtype_kind dtype_kind(enum dtype t);

#endif
