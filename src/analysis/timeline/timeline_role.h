/* What a piece of the timeline is, in one word: by it the viewer colours it, the same in each recording. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_ROLE_H
#define OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_ROLE_H

#include "store/profile.h"

/* X(id, word): roles of ranges of the host. Device work has the class of its kernel (op/kernels.h), memcpy or memset. */
#define TIMELINE_HOST_ROLES(X)                                                                                                     \
	X(OP, "op") X(COMM, "communication") X(ANNOTATION, "annotation") X(STEP, "step") X(DATA, "data loader") X(MODULE, "module") \
	X(PYTHON, "python") X(CALL, "call") X(SYNC, "synchronization") X(ALLOC, "allocation") X(OVERHEAD, "overhead") X(OS, "os call") \
	X(OTHER, "other")

/* Row of gpu_op if device, else of span. Needs PASS_NAMES. The word is static. */
const char *timeline_role(const struct profile *p, bool device, uint32_t row);

#endif
