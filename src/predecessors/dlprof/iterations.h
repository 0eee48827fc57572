/* How DLProf cuts a recording into iterations. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_ITERATIONS_H
#define OPSCOPE_PREDECESSORS_DLPROF_ITERATIONS_H

#include "analysis/steps/iterations.h"
#include "analysis/steps/slice.h"

/* Calls of the key op in order of their ends cut the whole recording, from 0 (when it began; the first event where
 * the input does not tell) to the end of the last event, into calls + 1 intervals numbered from 0: [0, end1 - 1], [end1, end2 - 1], ...
 * Without a key op there is one. What belongs to an interval starts in it. Several GPUs: key_borders. */
struct dlprof_iterations {
	int64_t *start_ns, *stop_ns; /* both inclusive, as DLProf's iteration_list has them */
	uint32_t n;                  /* >= 1 */
	uint32_t calls;              /* of the key op; 0: it was not found, or none was given and the default is not there */
	struct str key;              /* what was looked for */
};
/* `key`: op name or id; "" = DLProf's default, global_step. Of p->ops only where PASS_OPS was done. */
void dlprof_iterations_of(const struct profile *p, struct str key, struct dlprof_iterations *out);
void dlprof_iterations_release(struct dlprof_iterations *d);
/* When the recording began: what DLProf counts times from. 0 where the input itself does; else the first event. */
int64_t dlprof_zero_ns(const struct profile *p);

/* Mean and standard deviation (population form: DLProf's tells the two apart nowhere) of the lengths stop - start + 1 of intervals
 * first..last; both are 0 when there is none. */
void dlprof_iterations_mean(const struct dlprof_iterations *d, uint32_t first, uint32_t last, double *mean_ns, double *deviation_ns);

/* The times of iterations first..last by its default key op or p->key_op. Needs PASS_NEST and PASS_CORRELATE. ERR_DATA. */
int dlprof_window(const struct profile *p, int64_t first, int64_t last, struct step_window *w, struct err *e);

#endif
