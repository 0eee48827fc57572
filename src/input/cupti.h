/* What CUPTI's numbers mean, as libkineto names it (its cuda_activity classes), for all inputs that carry its records. */
#ifndef OPSCOPE_INPUT_CUPTI_H
#define OPSCOPE_INPUT_CUPTI_H

#include "store/build.h"

/* CUpti_ActivityMemoryKind: "Pageable", ...; others "Unknown". Constants. */
const char *cupti_memory_kind(int64_t kind);
/* CUpti_ActivityMemcpyKind: "HtoD", ...; others "Unknown". */
const char *cupti_copy_kind(int64_t kind);
/* CUpti_ActivitySynchronizationType: "Stream Sync", ...; others "Unknown". */
const char *cupti_sync_name(int64_t type);

/* Blocks and warps per SM, of a kernel whose grid and block are known, on the device of that row (ROW_NONE: unknown, then nothing is set). */
void cupti_per_sm(const struct devices *d, uint32_t row, struct launch_row *l);

#endif
