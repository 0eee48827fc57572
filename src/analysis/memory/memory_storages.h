/* Memory that must have been held before the recording, by an execution trace of it: storages that an op takes before any op of the recording has made them.
 * An execution trace numbers storages, but has no addresses; and what ops make is not all in it (workspaces, numbers that become tensors). So a storage counts only
 * if every block of its size that the recording had allocated by then is that of another storage. A number may be given again once its storage is gone: what is
 * said of it behind the op that makes it anew is of another. Its size is that of the tensor that the first op takes, which may be a view of a part: at least so much was held.
 *
 * What it is for, by torch's data flow as far as these numbers carry it:
 *   GRADIENT         AccumulateGrad or Optimizer.zero_grad takes it
 *   PARAMETER        ops outside of autograd and the optimizer take it, and an Optimizer.step that comes after a backward pass of the recording
 *   OPTIMIZER_STATE  such an Optimizer.step alone takes it
 * All else is Unknown. */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_STORAGES_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_STORAGES_H

#include "analysis/memory/memory_places.h"

enum memory_storage_kind { STORAGE_OTHER, STORAGE_FORWARD, STORAGE_OPTIMIZER_STATE, STORAGE_PARAMETER, STORAGE_GRADIENT };

struct memory_storage {
	int64_t bytes;
	enum memory_storage_kind kind; /* STORAGE_FORWARD: ops outside of the optimizer alone take it */
};

/* Those on `device` (memory_device()), in the order of their first use; *out is the caller's (mem_free). O(n log n) in the tensors of all ops. */
uint32_t memory_storages(const struct profile *p, const struct memory_places *places, int device, struct memory_storage **out);

#endif
