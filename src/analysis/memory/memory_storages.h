/* Memory that must have been held before the recording, by an execution trace: storages that an op takes before any op of the recording has made them.
 *
 * An execution trace numbers storages, and has no addresses. Not all that ops make is in it: workspaces and numbers that become tensors are missing. So a storage counts only if
 * every block of its size that the recording had allocated by then is that of another storage. torch gives a number again once its storage is gone: the uses behind an
 * op that makes the number are of another storage. The size of a storage is that of the tensor that the first op takes. This tensor may be a view of a part: at
 * least so much was held.
 *
 * What a storage is for follows from the ops that take it:
 *   GRADIENT         AccumulateGrad or Optimizer.zero_grad
 *   PARAMETER        ops outside of autograd and the optimizer, and an Optimizer.step that comes after a backward pass of the recording
 *   OPTIMIZER_STATE  such an Optimizer.step, and no op outside of autograd and the optimizer
 *   FORWARD          ops outside of autograd and the optimizer, and no Optimizer.step
 *   OTHER            anything else, or an Optimizer.step before the first backward pass: gradients from before the recording then look like parameters and state */
#ifndef OPSCOPE_ANALYSIS_MEMORY_MEMORY_STORAGES_H
#define OPSCOPE_ANALYSIS_MEMORY_MEMORY_STORAGES_H

#include "analysis/memory/memory_places.h"

enum memory_storage_kind { STORAGE_OTHER, STORAGE_FORWARD, STORAGE_OPTIMIZER_STATE, STORAGE_PARAMETER, STORAGE_GRADIENT };

struct memory_storage {
	int64_t bytes;
	enum memory_storage_kind kind;
};

/* The storages on `device` (as in memory_device()), by size and then by first use. *out is the caller's (mem_free). O(n log n) in the tensors of all ops. */
uint32_t memory_storages(const struct profile *p, const struct memory_places *places, int device, struct memory_storage **out);

#endif
