/* Metrics of GPUs that a profiler samples thousands of times a second (nsys profile --gpu-metrics-devices=...). An input writes them into the store, and
 * analysis/costs/sampled.h reads them there:
 *
 *   marks    a mark is a point of a curve: its phase is 'C', its category SAMPLED_CATEGORY, its name that of the metric. ARG_COUNTER_DEVICE is the GPU, ARG_COUNTER_VALUE
 *            percent or MHz: the mean over one sample or several. A point holds up to the next point of its metric and GPU, and for SAMPLED_POINT_NS at most
 *   kernels  ARG_SAMPLES, ARG_SAMPLED_NS and ARG_SAMPLES_OF; behind them the mean of each metric over these samples, named as the metric
 *   facts    for each GPU: SAMPLED_INTERVAL_NS, SAMPLED_POINT_NS, SAMPLED_WHY_NOT
 *
 * A sample is the mean over the time since the sample before. It is of the whole GPU: what other processes do there is in it, too. */
#ifndef OPSCOPE_STORE_SAMPLED_H
#define OPSCOPE_STORE_SAMPLED_H

#include "base/str.h"

#define SAMPLED_CATEGORY "GPU_METRICS"

/* Keys of facts about the run; the GPU's ordinal follows each. */
#define SAMPLED_INTERVAL_NS "GPU metrics, interval_ns, GPU "   /* the usual time from one sample to the next */
#define SAMPLED_POINT_NS "GPU metrics, point_ns, GPU "         /* the longest time for which a point holds */
#define SAMPLED_WHY_NOT "GPU metrics, kernels unknown, GPU "   /* why no kernel of that GPU has samples; absent where kernels may have some */

/* Values of ARG_SAMPLES_OF. */
#define SAMPLED_CALL "call" /* the samples lie in this kernel, which ran alone: SAMPLED_CALL_LEAST or more */
#define SAMPLED_NAME "name" /* the samples lie in this kernel and its neighbours, which are calls of the same kernel, grid and block: they say something of many calls together */
enum { SAMPLED_CALL_LEAST = 3 };

/* The metrics that have columns in reports. All are shares of the whole time, idle time included. */
enum sampled_metric {
	SAMPLED_SM_ACTIVE,     /* SMs with a warp (sm__cycles_active) */
	SAMPLED_SM_ISSUE,      /* warp schedulers that issued an instruction */
	SAMPLED_TENSOR_ACTIVE, /* Tensor Core pipes that were active (sm__pipe_tensor_cycles_active). Turing's "Tensor Active / FP16 Active" is left out, since FP16 work counts in it, too */
	SAMPLED_WARPS,         /* compute warps in flight, of the most that all SMs hold */
	SAMPLED_DRAM_READ,     /* the memory's interface was reading (dram__read_throughput) */
	SAMPLED_DRAM_WRITE,
	SAMPLED_METRICS,       /* how many there are; any other metric */
};
/* By nsys' name of the metric, of GPUs from Turing on, with or without "[Throughput %]". */
enum sampled_metric sampled_metric_of(struct str name);

#endif
