/* API calls in which the host waits for a device. They tell of waits where the tracer wrote no records of synchronisation.
 *
 *   a call whose name says that it waits     cudaStreamSynchronize, hipDeviceSynchronize, ... (analysis/names/host_names.def)
 *   a call that copies and returns with      cudaMemcpy, hipMemcpyWithStream, ..., if the copy that it launched had ended when the call returned, or
 *   the copy                                 the copy is not recorded; cudaMemcpyAsync from or to pageable memory likewise: to pageable memory always,
 *                                            from there if the copy had ended ("API synchronization behavior" in NVIDIA's CUDA Runtime API)
 *
 * A wait counts once: of calls inside each other the outermost counts, and a call of which the input has a record (by correlation id and time) does not. */
#ifndef OPSCOPE_REPORT_PARTS_WAIT_CALLS_H
#define OPSCOPE_REPORT_PARTS_WAIT_CALLS_H

#include "store/profile.h"

enum wait_call {
	WAIT_CALL_NONE,
	WAIT_CALL_SYNC,
	WAIT_CALL_COPY,
	WAIT_CALL_RECORDED, /* the input has a record of this wait, or of a call inside the call */
};

struct wait_calls {
	uint8_t *kind;          /* enum wait_call, by span */
	uint32_t *copy;         /* gpu_op that a WAIT_CALL_COPY waited for, by span; ROW_NONE = the copy is not recorded; says nothing of other calls */
	uint8_t *asks;          /* by span: a record (SPAN_SYNC) of a call that only asks whether the device is done, and does not wait */
	uint64_t asked;         /* how many records `asks` marks */
	uint64_t calls;         /* API calls looked at */
	uint64_t frees;         /* calls that free device memory: they may wait, too, and no record says how long */
	int64_t frees_ns;
};

/* Needs PASS_NEST and PASS_CORRELATE. Release with wait_calls_release. O(n log n). */
void wait_calls_find(const struct profile *p, struct wait_calls *w);
void wait_calls_release(struct wait_calls *w);

#endif
