/* Sums over the ops and kernels of a window, by whether they use Tensor Cores. */
#ifndef OPSCOPE_QUERY_SUMMARY_SUMS_H
#define OPSCOPE_QUERY_SUMMARY_SUMS_H

#include "analysis/time/usage.h"
#include "query/op_sums.h"

enum tc_use {
	TC_ALL,       /* of ops or kernels: everything, device work that is no kernel included */
	TC_USING,
	TC_ELIGIBLE,  /* ops: could use them, and do not */
	TC_UNKNOWN,   /* ops: could use them, but some kernel's name does not tell; kernels: the name does not tell */
	TC_MEMORY,    /* kernels: copies and sets */
	TC_OTHER,     /* ops: could not use them; kernels: do not */
	TC_USES,
};

struct op_use {
	int64_t gpu_ns;        /* union of the device work, of each GPU by itself, added up */
	int64_t cpu_ns;        /* union of the ranges on the host, of all threads */
	uint32_t ops;
	uint64_t calls;
};

struct kernel_use {
	int64_t gpu_ns;        /* sum of durations */
	int64_t api_ns;        /* durations of the calls that launched them: once a call, or by rules with call_per_launch once a launch */
	uint32_t names;        /* distinct: short names of kernels, names of the API calls of copies and sets */
	uint64_t calls;
};

struct summary_sums {
	struct op_use op[TC_USES];
	struct kernel_use kernel[TC_USES];
	int64_t tc_ns, kernel_ns, unknown_ns; /* kernels that could use Tensor Cores (by rules with by_type all of ops that could): that do, all, of no known use */
	int64_t unlaunched_ns;                /* device work of no recorded call, in kernel[] but by rules with recorded_calls */
};

/* Needs PASS_OPS. */
void summary_sum(const struct profile *p, const struct window *w, const struct op_rules *rules, struct summary_sums *out);

/* What the time that the args choose was used for, as report summary tells it: that of the whole steps among them, added up; without steps, all
 * of the recording. Needs PASS_STEPS and PASS_OPS. ERR_DATA. */
int summary_usage(const struct profile *p, const struct report_args *args, struct usage *out, struct err *e);

#endif
