/* Metrics of GPUs that a profiler samples thousands of times a second (nsys profile --gpu-metrics-devices=...): what an input writes and analysis/costs/sampled.h reads.
 *
 *   marks    phase 'C', category SAMPLED_CATEGORY, named as the metric, with ARG_COUNTER_DEVICE and ARG_COUNTER_VALUE: percent, or MHz. A point is the mean of one sample, or of
 *            several, and holds from its mark to the next one of its name and device, as long as SAMPLED_POINT_NS at most
 *   kernels  ARG_SAMPLES, ARG_SAMPLED_NS and ARG_SAMPLES_OF, and the mean of each metric over these samples under its name
 *   facts    by GPU: SAMPLED_INTERVAL_NS, SAMPLED_POINT_NS, SAMPLED_WHY_NOT
 *
 * A sample is the mean over the time since the one before, of the whole GPU: all processes on it count. */
#ifndef OPSCOPE_STORE_SAMPLED_H
#define OPSCOPE_STORE_SAMPLED_H

#include "base/str.h"

#define SAMPLED_CATEGORY "GPU_METRICS"

/* Facts about the run; the ordinal of the GPU stands behind. */
#define SAMPLED_INTERVAL_NS "GPU metrics, interval_ns, GPU "   /* the usual time from one sample to the next */
#define SAMPLED_POINT_NS "GPU metrics, point_ns, GPU "         /* the longest time for which a point holds */
#define SAMPLED_WHY_NOT "GPU metrics, kernels unknown, GPU "   /* why no kernel of that GPU has samples; not there where they were told */

/* Values of ARG_SAMPLES_OF. */
#define SAMPLED_CALL "call" /* they lie in the kernel, which ran alone: at least SAMPLED_CALL_LEAST */
#define SAMPLED_NAME "name" /* they lie in calls of one kernel, grid and block, one behind the other, of which this is one: they say something of many calls together */
enum { SAMPLED_CALL_LEAST = 3 };

/* Those that reports have columns for, of nsys' names for the GPUs from Turing on, with and without "[Throughput %]". All are shares of the whole time, idle time included. */
enum sampled_metric {
	SAMPLED_SM_ACTIVE,     /* SMs with a warp (sm__cycles_active) */
	SAMPLED_SM_ISSUE,      /* schedulers that issued an instruction */
	SAMPLED_TENSOR_ACTIVE, /* pipes of Tensor Cores that were issuing (sm__pipe_tensor_cycles_active). Turing's "Tensor Active / FP16 Active" counts other work, too, and is none */
	SAMPLED_WARPS,         /* warps of compute shaders, of the most that all SMs hold */
	SAMPLED_DRAM_READ,     /* the memory's interface was reading (dram__read_throughput) */
	SAMPLED_DRAM_WRITE,
	SAMPLED_METRICS,       /* none of these */
};
enum sampled_metric sampled_metric_of(struct str name);

#endif
