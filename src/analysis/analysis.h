/* Passes: what turns a freshly read profile into one that answers questions. Each pass runs once per profile and
 * adds DERIVED columns or a structure; what it needs runs before it. After the passes that a report needs have run, the
 * profile is not changed any more.
 *
 * Adding a pass: a bit in enum analysis_pass (store/profile.h), a function, a row in analysis.c. */
#ifndef OPSCOPE_ANALYSIS_ANALYSIS_H
#define OPSCOPE_ANALYSIS_ANALYSIS_H

#include "base/err.h"
#include "store/profile.h"

/* `passes`: enum analysis_pass bits; PASS_NAMES always runs, and PASS_TENSOR_CORES with PASS_CORRELATE. A pass that is marked as done but whose results are not there runs again, and so does
 * what built on it. */
int analysis_run(struct profile *p, unsigned passes, struct err *e);

/* After rows, arguments or strings were added to a profile whose passes have run: their results are of what there was, and go. */
void analysis_forget(struct profile *p);

/* The passes themselves; call analysis_run. */
int pass_names(struct profile *p, struct err *e);
int pass_nest(struct profile *p, struct err *e);
int pass_correlate(struct profile *p, struct err *e);
int pass_tensor_cores(struct profile *p, struct err *e);
int pass_steps(struct profile *p, struct err *e);
int pass_memory(struct profile *p, struct err *e);
int pass_ops(struct profile *p, struct err *e);

/* For each span that is a call: the op or annotation of its process with its external id, also where these ids mean nothing (pass_correlate then goes by
 * time); else ROW_NONE. The array is the caller's (mem_free). */
uint32_t *correlate_by_ext_id(const struct profile *p);

/* What it took of the host's time: ranges of a graph's replay did not run. */
static inline int64_t span_host_ns(const struct profile *p, uint32_t i) { return span_is_replay(p, i) ? 0 : p->span.dur_ns[i]; }
static inline int64_t span_end(const struct profile *p, uint32_t i) { return p->span.start_ns[i] + p->span.dur_ns[i]; }
static inline int64_t gpu_end(const struct profile *p, uint32_t i) { return p->gpu_op.start_ns[i] + p->gpu_op.dur_ns[i]; }

#endif
