/* Stacks of a running program and of all that it starts (--sample=cpu), in segments beside those that the programs write themselves. */
#ifndef OPSCOPE_RECORD_SAMPLE_H
#define OPSCOPE_RECORD_SAMPLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler;

/* For a process that waits for its exec. NULL and the reason when the system does not allow it. `max_bytes` is of each process, 0 = no bound; beyond it the
 * oldest samples go (`ring`), or no more come. */
struct sampler *sampler_start(pid_t pid, const char *dir, int64_t hz, int64_t max_bytes, bool ring, struct err *e);

struct sampled {
	uint64_t samples, lost;   /* lost: the kernel had no room */
	bool broken;              /* a file could not be written */
};
/* Ends it, gives frames their names, and frees it. */
void sampler_finish(struct sampler *s, struct sampled *r);

#endif
