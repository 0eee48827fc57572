/* The iterations of an inference server in a recording. */
#ifndef OPSCOPE_ANALYSIS_STEPS_SERVING_STEPS_H
#define OPSCOPE_ANALYSIS_STEPS_SERVING_STEPS_H

#include "analysis/steps/serving.h"
#include "store/profile.h"

struct steps;

/* By string id. Patched servers put a range of another format around the iteration's own: the inner one is the iteration. */
enum serving_name { SERVING_NO_NAME, SERVING_ITERATION, SERVING_AROUND };

/* By string id: enum serving_name. *any: is there an iteration. The array is the caller's (mem_free). */
uint8_t *serving_names(const struct profile *p, bool *any);

/* Tells each step in *s what the server says of the iterations that begin in it (step->serving, in the arena); steps without one keep NULL. What a range
 * around the iteration tells counts first. Several threads, such as the workers
 * of one model, mark the same iterations: the thread that marks most counts. */
void serving_of_steps(struct profile *p, struct steps *s);

#endif
