/* Kernels grouped by name, by op or by launch configuration, for the tables of kernels. */
#ifndef OPSCOPE_REPORT_PARTS_KERNEL_GROUPS_H
#define OPSCOPE_REPORT_PARTS_KERNEL_GROUPS_H

#include "analysis/costs/counters.h"
#include "analysis/costs/sampled.h"
#include "analysis/tree/optree.h"
#include "base/intern.h"
#include "base/sort.h"
#include "query/window.h"

enum kernels_by { KERNELS_BY_NAME, KERNELS_BY_OP, KERNELS_BY_LAUNCH, KERNELS_BY_INSTANCE /* kernel_calls.h */ };

/* How a table finds what launched a kernel, and the figures of a launch. */
struct kernel_rules {
	uint32_t (*op)(const struct optree *t, const struct profile *p, uint32_t gpu_op); /* string id of the name of what launched it; 0 = none */
	double (*blocks_per_sm)(const struct profile *p, uint32_t launch);                /* NaN = not known */
	double (*occupancy_pct)(const struct profile *p, uint32_t launch);                /* the same */
};

struct kernel_group {
	/* Compared as bytes; what the grouping does not ask for is 0. */
	struct kernel_key {
		uint32_t name, op;     /* string ids; op: 0 = none */
		int32_t grid[3], block[3], registers, shared_bytes;
	} key;
	uint64_t calls;
	int64_t total, min, max;
	int64_t tc_ns[3];              /* of total, by enum tri: did the kernel use Tensor Cores */
	uint32_t tc_calls[3];          /* the same of calls */
	double blocks, occupancy;      /* sums of value x us */
	int64_t blocks_ns, occupancy_ns; /* of the calls whose value is known */
	uint32_t first;                /* of its durations in `durations` */
	struct str lines;              /* of its sources (analysis/tree/sources.h) */
	struct counter_sums counters;  /* none unless kernel_groups.counters */
	struct sampled_sums sampled;   /* none unless kernel_groups.samples */
	int32_t device;                /* of its longest call */
	bool several_lines;            /* these of the first call; others have other ones */
	uint32_t launch;               /* by launch: a row of p->launch; ROW_NONE: GPUs that hold unlike numbers of its blocks */
};

struct kernel_groups {
	const struct profile *p;
	const struct optree *t;
	const struct kernel_rules *rules;
	enum kernels_by by;
	bool has_device;
	int64_t device;
	struct intern keys;
	struct kernel_group *v;
	uint32_t cap, n;
	bool blocks, occupancy;        /* the value of some call is known */
	bool sources, counters;        /* some work has them */
	bool samples;                  /* GPUs were sampled */
	struct counter_sets sets;      /* with counters */
	struct counter_sums measured;  /* of all */
	struct sampled_sums sampled;   /* the same */
	struct sort_item *durations;   /* by group, then ascending */
	uint32_t n_durations;
	int64_t all_ns, graphs_ns;     /* graphs: replays of whole graphs, of all */
	uint64_t graphs;
};

/* Groups the kernels that args ask for; args->variant->by is an enum kernels_by. ERR_DATA when there is no such kernel. *t must outlive *g. */
int kernel_groups_collect(const struct profile *p, const struct report_args *args, const struct window *w, const struct optree *t, const struct kernel_rules *rules,
                          struct kernel_groups *g, struct err *e);
void kernel_groups_release(struct kernel_groups *g);

/* Sets a column to the three numbers, unless they were not recorded. */
void kernel_groups_put_triple(struct table *out, unsigned col, const int32_t v[3], const char *fmt);

#endif
