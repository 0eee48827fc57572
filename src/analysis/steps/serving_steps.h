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

/* One iteration: the times of its range on the host, and what the server says of it. What a range around it tells counts first. */
struct serving_iteration {
	int64_t start_ns, end_ns;
	struct serving says;
};

/* Those of the thread that marks most, in order of start: several threads, such as the workers of one model, mark the same ones. NULL where there
 * are none; else the caller's (mem_free). Needs no pass. */
struct serving_iteration *serving_iterations(const struct profile *p, uint32_t *n);

/* Tells each step in *s what the server says of the iterations that begin in it (step->serving, in the arena); steps without one keep NULL. */
void serving_of_steps(struct profile *p, struct steps *s);

#endif
