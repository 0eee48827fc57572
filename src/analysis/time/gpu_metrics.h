/* How well each GPU was used during the steps; "the span" is their time.
 * Needs PASS_STEPS.
 *
 *   utilization   = |union of kernels within the span| / span
 *   sm_efficiency = integral over the span of min(1, sum of blocks / SMs of the kernels running at that time) / span
 *   occupancy     = sum(occupancy x duration) / sum(duration), kernels cut at the span's borders; percent, as stated by the
 *                   trace: min(threads / SMs / max threads per SM, theoretical occupancy); else the same by gpu/occupancy.h
 *   tc_ratio      = time of kernels that use Tensor Cores / time of kernels
 * What the input does not state is NaN.
 *
 * All figures are of the span, work is cut at its borders, time between two steps is not in it. Blocks per SM and occupancy are those of
 * launch_blocks_per_sm and launch_occupancy_pct; kernels for which they are unknown count as 0 in the SM efficiency and
 * not at all in the occupancy, and where they are more than half of the kernel time, the figure is NaN. The Tensor Core
 * time is that of all kernels; those of which it is unknown are counted apart. struct gpu_metrics_rules say what is otherwise where numbers of
 * another tool are asked for. */
#ifndef OPSCOPE_ANALYSIS_TIME_GPU_METRICS_H
#define OPSCOPE_ANALYSIS_TIME_GPU_METRICS_H

#include "analysis/steps/steps.h"
#include "analysis/tree/optree.h"
#include "op/kernels.h"

struct gpu_metrics {
	int32_t device;
	uint32_t row;                /* in profile->device; ROW_NONE = not described */
	uint64_t kernels, copies, sets; /* in the span, or by whole_trace in the trace */
	uint64_t graphs;             /* of these kernels, replays of whole graphs, which hold kernels that were not recorded */
	uint64_t trace_kernels;      /* kernels in the whole trace */
	uint64_t outside;            /* kernels, copies and sets of the trace that lie outside the span */
	int64_t busy_ns;             /* any device work, within the span */
	int64_t kernel_busy_ns;      /* kernels, within the span */
	int64_t kernel_ns;           /* sum of durations, within the span; by whole_trace in the trace */
	int64_t tc_ns, tc_unknown_ns; /* of kernel_ns */
	int64_t blocks_known_ns;     /* duration within the span of the kernels whose blocks per SM are known */
	int64_t occupancy_known_ns;  /* the same of occupancy */
	double utilization, sm_efficiency, occupancy_pct, tc_ratio;
	uint64_t bad_values;         /* stated blocks per SM or occupancy that are no such thing: negative or a false 0 */
};

struct gpu_metrics_list {
	struct gpu_metrics *v;       /* in order of ordinal: devices with work, then described ones without */
	unsigned n;
	int64_t span_ns;             /* length of the span; 0 when there are no steps */
};

/* What the trace says of a launch, by the default rules; NaN = unknown.
 * Blocks per SM: as stated where that is positive, else blocks of the grid / SMs of the device. */
double launch_blocks_per_sm(const struct profile *p, uint32_t launch);
/* Estimated achieved occupancy in percent: as stated, else by gpu/occupancy.h. A stated 0 counts as not stated where the kernel has warps for 1 % or more
 * of what an SM holds: Kineto writes 0 for kernels whose shared memory it cannot place. */
double launch_occupancy_pct(const struct profile *p, uint32_t launch);

struct gpu_metrics_rules {
	bool stated;                 /* blocks per SM and occupancy as the trace states them alone, negative ones ignored; a described device is the one with its ordinal */
	bool whole_trace;            /* counts and the Tensor Core time are of the whole trace; the span goes from the start of the first step to the end of the last */
	enum tri (*uses_tc)(const struct profile *p, uint32_t gpu); /* a row of gpu_op: a kernel */
	/* Sets the ratios from the rest. load_ns: the integral of sm_efficiency; occupancy_time: sum(occupancy x duration). */
	void (*finish)(struct gpu_metrics *m, double load_ns, double occupancy_time, int64_t span_ns);
};
extern const struct gpu_metrics_rules gpu_metrics_own;

/* With a tree, the Tensor Core time is of the kernels that it attaches to ops; NULL = of all. Over all that count of `steps`, or from that with number
 * *first to that with number *last. */
void gpu_metrics_measure(const struct profile *p, const struct steps *steps, const struct gpu_metrics_rules *rules, const struct optree *tree, const int64_t *first,
                         const int64_t *last, struct gpu_metrics_list *out);
void gpu_metrics_release(struct gpu_metrics_list *l);

#endif
