/* Several threads ask one profile at once: for reports of an aggregation, for what detectors find. */
#ifndef OPSCOPE_STORE_TOGETHER_H
#define OPSCOPE_STORE_TOGETHER_H

#include "base/crew.h"

struct profile;

/* How many threads are worth starting for questions to *p. Each question takes memory of its own: where memory is short it is one, and of a large *p as many as the memory has room for. */
unsigned together_threads(const struct profile *p);

/* crew_run of jobs that ask *p: further threads are handed what the calling thread is (store/reuse.h). By more than one thread, nothing may be added to *p or
 * its part until it returns: passes have run, and the part is cut. */
int together_run(struct profile *p, const struct crew_jobs *jobs, unsigned threads);

#endif
