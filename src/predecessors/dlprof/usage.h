/* What the time was used for by DLProf's rules: a kernel uses Tensor Cores by its list of names, I/O is fread and fwrite, the CPU is ops and API calls
 * alone, and all visible GPUs count. Needs PASS_OPS. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_USAGE_H
#define OPSCOPE_PREDECESSORS_DLPROF_USAGE_H

#include "analysis/time/usage.h"

extern const struct usage_rules dlprof_usage;

#endif
