/* What the calls of ops took, added up: by op, by type, by whatever is asked for. Shared by the reports of ops.
 * Life cycle: op_sums_init, op_sums_add for each instance, read, op_sums_release. */
#ifndef OPSCOPE_QUERY_OP_SUMS_H
#define OPSCOPE_QUERY_OP_SUMS_H

#include "analysis/tree/op_instances.h"
#include "query/window.h"

enum op_time { OP_CPU, OP_GPU, OP_OVERHEAD, OP_IDLE, OP_TIMES };

struct op_stat {
	int64_t total, min, max;
};

struct op_sum {
	uint64_t calls;
	struct op_stat time[OP_TIMES];
	int64_t work_ns;          /* durations of all device work, each by itself */
	int64_t kernel_ns, tc_ns; /* durations of all kernels; durations of the kernels that use Tensor Cores */
	int64_t unknown_ns;       /* durations of the kernels whose name does not tell whether they use Tensor Cores */
	uint32_t kernels, tc_kernels;
};

/* What differs where a predecessor's numbers are asked for; NULL = opscope's own rules. */
struct op_rules {
	bool listed_kernels;      /* a kernel uses Tensor Cores if it is on the predecessors' list (op/kernels.h), else it does not */
	bool by_type;             /* an op could use Tensor Cores by its type alone, and all its kernels count; else a kernel counts if it could */
	bool recorded_calls;      /* leave out device work whose API call was not recorded */
	bool function_names;      /* kernels are counted by their functions' names, without arguments */
	bool call_per_launch;     /* a call that launches several kernels counts with each of them */
};

struct op_tc;

/* Whether kernels use Tensor Cores, asked once a name. `listed`: if they are on the predecessors' list (op/kernels.h), else they do not. */
struct op_tc *op_tc_new(const struct profile *p, bool listed);
void op_tc_free(struct op_tc *t);
enum tri op_tc_of(struct op_tc *t, uint32_t gpu_op);

/* Adds instance k to *s. */
void op_sum_add(struct op_sum *s, const struct profile *p, uint32_t k, struct op_tc *t);

static inline double op_stat_mean(const struct op_sum *s, enum op_time t)
{
	return s->calls ? (double)s->time[t].total / (double)s->calls : 0;
}

/* Whether instance k counts in this window: that in which it starts; device work of no call, where it ran. */
bool op_in_window(const struct profile *p, uint32_t k, const struct window *w);

/* Whether the op, one inside it or one of its kernels could use Tensor Cores. */
static inline bool op_eligible(const struct op *op) { return op->tc_eligible || op->tc_inside; }

/* ERR_DATA when there is neither an op nor device work nor a call. */
int op_check(const struct profile *p, struct err *e);
/* Notes how the device time in the window divides: ops + calls outside ops + no recorded call. */
void op_note_parts(struct table *t, const struct profile *p, const struct window *w);

#endif
