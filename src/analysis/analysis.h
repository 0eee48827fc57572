/* Passes: what turns a freshly read profile into one that answers questions. Each pass runs at most once per profile and
 * adds DERIVED columns or a structure; what it needs runs before it. After the passes that a report needs have run, the
 * profile is not changed any more.
 *
 * Adding a pass: a bit here, a function, a row in analysis.c. */
#ifndef OPSCOPE_ANALYSIS_ANALYSIS_H
#define OPSCOPE_ANALYSIS_ANALYSIS_H

#include "base/err.h"
#include "store/profile.h"

enum analysis_pass {
	PASS_NEST = 1 << 0,      /* span.parent; span.op of ops and frames (B-07, D-13) */
	PASS_CORRELATE = 1 << 1, /* span.op of API calls; gpu_op.call, gpu_op.op (B-08, D-04, E-03, E-17) */
	PASS_STEPS = 1 << 2,     /* profile->steps (B-14) */
	PASS_MEMORY = 1 << 3,    /* memory.span (B-23) */
};

int analysis_run(struct profile *p, unsigned passes, struct err *e);

/* The passes themselves; call analysis_run. */
int pass_nest(struct profile *p, struct err *e);
int pass_correlate(struct profile *p, struct err *e);
int pass_steps(struct profile *p, struct err *e);
int pass_memory(struct profile *p, struct err *e);

static inline int64_t span_end(const struct profile *p, uint32_t i) { return p->span.start_ns[i] + p->span.dur_ns[i]; }
static inline int64_t gpu_end(const struct profile *p, uint32_t i) { return p->gpu_op.start_ns[i] + p->gpu_op.dur_ns[i]; }

#endif
