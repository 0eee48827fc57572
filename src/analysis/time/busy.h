/* What devices did over time: computing, communicating, copying, nothing.
 *
 * Which event is what: memcpy is copy; a kernel of a collective is communication; every other kernel, and memset, is
 * computation. Each kind is the union of its events over all streams, so that concurrent kernels count once. Then
 *   exposed_comm = communication - computation            (nothing else hid it)
 *   exposed_copy = copy - computation - communication
 *   busy = computation + exposed_comm + exposed_copy      (= the union of everything)
 *   total = end of the last event - start of the first; idle = total - busy
 * With a window, everything is cut at its borders and total is its length. */
#ifndef OPSCOPE_ANALYSIS_TIME_BUSY_H
#define OPSCOPE_ANALYSIS_TIME_BUSY_H

#include "analysis/time/gpus.h"
#include "analysis/time/interval.h"
#include "store/profile.h"

enum busy_kind {
	BUSY_COMPUTE, BUSY_EXPOSED_COMM, BUSY_EXPOSED_COPY, BUSY_BUSY, BUSY_IDLE, BUSY_TOTAL, BUSY_COMM, BUSY_COPY,
	BUSY_KINDS,
};

struct busy {
	int64_t ns[BUSY_KINDS];
	uint64_t events;
};

/* Over the device work g with take[g] == want (take NULL: all). */
void busy_measure(const struct profile *p, const uint8_t *take, uint8_t want, const struct intervals *window, struct busy *out);
/* The same of each GPU by itself, in one pass: out[gpus->n]. `window` is not NULL. */
void busy_measure_each(const struct profile *p, const struct gpus *gpus, const uint8_t *take, uint8_t want, const struct intervals *window,
                       struct busy *out);

#endif
