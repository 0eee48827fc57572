/* What the calls of ops took, added up: by op, by type, by whatever is asked for. Shared by the reports of ops.
 * Life cycle: op_sums_init, op_sums_add for each instance, read, op_sums_release. */
#ifndef OPSCOPE_REPORT_OP_SUMS_H
#define OPSCOPE_REPORT_OP_SUMS_H

#include "analysis/dlprof_hints.h"
#include "analysis/op_instances.h"
#include "report/window.h"

enum op_time { OP_CPU, OP_GPU, OP_OVERHEAD, OP_IDLE, OP_TIMES };

struct op_stat {
	int64_t total, min, max;
};

struct op_sum {
	uint64_t calls;
	struct op_stat time[OP_TIMES];
	int64_t work_ns;          /* durations of all device work, each by itself */
	int64_t kernel_ns, tc_ns; /* the same of kernels, and of those that use Tensor Cores */
	int64_t unknown_ns;       /* of kernels whose name does not tell */
	uint32_t kernels, tc_kernels;
};

/* Whether this work uses Tensor Cores. `dlprof`: by DLProf's list of names. */
enum tri op_tc_of(const struct profile *p, uint32_t gpu_op, bool dlprof);

/* Adds instance k to *s. */
void op_sum_add(struct op_sum *s, const struct profile *p, uint32_t k, bool dlprof);

static inline double op_stat_mean(const struct op_sum *s, enum op_time t)
{
	return s->calls ? (double)s->time[t].total / (double)s->calls : 0;
}

/* The steps that are asked for; in DLProf's tables, its iterations. As window_of. */
int op_window(const struct profile *p, const struct report_args *args, struct window *w, struct err *e);
/* Whether instance k counts in this window: that in which it starts; device work of no call, where it ran. */
bool op_in_window(const struct profile *p, uint32_t k, const struct window *w);

/* Adds what applies of enum dlprof_hint as notes to one of DLProf's tables. */
void op_dlprof_hints(struct table *t, const struct profile *p, const struct window *w, unsigned which);
/* DLProf's 16 columns of time; returns the index of the first. And their cells. */
unsigned op_dlprof_columns(struct table *t);
void op_dlprof_put(struct table *t, unsigned first, const struct op_sum *s);
/* By DLProf's rule, its type alone, or ours: an op inside it will do. */
static inline bool op_eligible(const struct op *op, bool dlprof) { return op->tc_eligible || (!dlprof && op->tc_inside); }
/* "fprop", "bprop", "": DLProf takes the optimizer for fprop. */
struct str op_dlprof_direction(const struct op *op);
/* Ops in DLProf's order, by the text of their ids, without those that DLProf does not have; n of them. Free with mem_free; texts are
 * in `a`. */
struct op_dlprof_row {
	struct op_dlprof_names names;
	uint32_t op;
};
struct op_dlprof_row *op_dlprof_order(const struct profile *p, struct arena *a, uint32_t *n);

/* ERR_DATA when there is neither an op nor device work nor a call. */
int op_check(const struct profile *p, struct err *e);
/* How device time divides: ops + calls outside ops + no recorded call; in the window. */
void op_note_parts(struct table *t, const struct profile *p, const struct window *w);

#endif
