/* What DLProf's rules do not see in recordings made after it: sentences for notes under its tables and for its console. Its numbers stay. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_HINTS_H
#define OPSCOPE_PREDECESSORS_DLPROF_HINTS_H

#include "base/buf.h"
#include "store/profile.h"

enum dlprof_hint {
	HINT_GPUS = 1,           /* GPUs listed that belong to other ranks */
	HINT_KERNELS = 2,        /* kernels that use Tensor Cores and are not on its list */
	HINT_TYPES = 4,          /* data types not recorded, so that "none are using FP16" is not known. Needs PASS_OPS */
	HINT_ALL = HINT_GPUS | HINT_KERNELS | HINT_TYPES,
};

/* Calls put() for each of `which` that applies. `in`: by row of gpu_op, what work counts; NULL = all. */
void dlprof_hints(const struct profile *p, unsigned which, const uint8_t *in, void (*put)(void *context, struct str text), void *context);

/* Whether any word of an op's data types is a 16-bit float. */
bool dlprof_is_half(struct str data_type);

#endif
