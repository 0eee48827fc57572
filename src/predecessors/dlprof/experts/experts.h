/* What DLProf's own detectors look at. Their texts are DLProf's, as it prints them; where no output of it with that finding is known,
 * the text is written in its manner, and the file says so. Thresholds are the guide's or, where it gives none, our own. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_EXPERTS_H
#define OPSCOPE_PREDECESSORS_DLPROF_EXPERTS_H

#include "analysis/tree/op_instances.h"
#include "detect/detect.h"
#include "op/model_config.h"
#include "predecessors/dlprof/hints.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/usage.h"
#include "query/report.h"

extern const struct expert_system dlprof_experts;

/* The aggregated iterations and what their time was used for; made once for all. */
struct dlprof_run {
	const struct profile *whole;  /* of which the profile may be a part */
	struct dlprof_iterations iterations;
	uint32_t first, last;         /* aggregated */
	struct usage usage;
};

const struct dlprof_run *dlprof_run_of(struct findings *f, const struct profile *p);

static inline int64_t dlprof_iteration_end(const struct dlprof_run *r, uint32_t i)
{
	return i + 1 < r->iterations.n ? r->iterations.start_ns[i + 1] : r->iterations.stop_ns[i];
}

/* Its findings of the iterations asked for, by p->key_op; free with findings_release. The same as a table: initialises *t; on error it is empty. */
int dlprof_findings_of(struct profile *p, const struct report_args *args, struct findings *f, struct err *e);
int dlprof_findings(struct profile *p, const struct report_args *args, struct table *t, struct err *e);

/* Percent of the window; of an empty one, 0. */
double dlprof_pct(const struct dlprof_run *r, double ns);

bool dlprof_is_tensorflow(const struct profile *p);
bool dlprof_is_pytorch(const struct profile *p);
/* How much of the GPUs' memory was used at most, in percent; below 0 = not stated. */
double dlprof_memory_pct(const struct profile *p);
/* Whether there are ranges of emit_nvtx, which state sequence numbers. */
bool dlprof_has_emit_ranges(const struct profile *p);

/* Ops that could use Tensor Cores and have instances in the profile. */
bool dlprof_is_eligible(const struct op *op);
/* Adds what applies of `which` as notes of the findings. */
void dlprof_note_hints(struct findings *f, const struct profile *p, unsigned which);
/* Whether an op of one of the types (NULL-terminated; "Xla*" is a prefix) was called. */
bool dlprof_has_type(const struct profile *p, const char *const *types);

/* "1, 3" */
struct str dlprof_device_list(struct findings *f, const int32_t *device, unsigned n);

#endif
