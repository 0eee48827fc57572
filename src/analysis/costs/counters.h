/* Hardware counters of kernels: what a profiler of kernels measured of each, apart from the trace (open/counters_join.h). They are arguments of device work, named as the metric, in base units (open/ncu.h). */
#ifndef OPSCOPE_ANALYSIS_COSTS_COUNTERS_H
#define OPSCOPE_ANALYSIS_COSTS_COUNTERS_H

#include "store/profile.h"

/* How the measured launch was told that a kernel's counters are of. */
enum counter_match {
	COUNTER_NONE,       /* it was not, or no one looked */
	COUNTER_BY_ORDER,   /* each kernel was measured as often as it was launched: the k-th launch of its name, grid and block */
	COUNTER_BY_RUN,     /* it stands in a row of launches that was measured: the same names, grids and blocks */
	COUNTER_MATCHES,
};
extern const char *const counter_match_name[COUNTER_MATCHES];

/* A fact about the run (profile.meta) for each metric that has a unit: the key is this and the metric, the value the unit. */
#define COUNTER_UNIT "counter unit: "
/* Kineto's category for kernels that CUPTI's range profiler measured; they are spans, whose times are made up: the time of the recording, divided by their number. */
#define COUNTER_RANGES "cuda_profiler_range"

/* What reports show of a kernel. */
enum counter {
	COUNTER_DRAM_BYTES,      /* read from and written to device memory */
	COUNTER_TENSOR_FLOPS,    /* operations of Tensor Cores, a multiply-add as 2 */
	COUNTER_TENSOR_INST,     /* instructions of Tensor Cores */
	COUNTER_OCCUPANCY_PCT,   /* active warps in percent of the most, while an SM has any */
	COUNTER_SM_PCT,          /* throughput of the SMs in percent of the peak */
	COUNTER_DRAM_PCT,        /* throughput of the device memory in percent of the peak */
	COUNTERS,
};

/* Whether any work has counters. */
static inline bool counters_any(const struct profile *p) { return profile_has_arg(p, ARG_COUNTERS); }

/* The counters of a piece of device work, NaN where it was not measured. */
struct counter_values {
	double v[COUNTERS];
};
struct counter_values counters_of(const struct profile *p, uint32_t gpu_op);

/* Of several pieces of work. `weighted`: values times durations, of the work whose value is known, which took `ns`. */
struct counter_sums {
	struct counter_sum {
		double sum, weighted;
		int64_t ns;
		uint64_t calls;      /* 0 = of none it is known */
	} of[COUNTERS];
	uint64_t calls;              /* that were measured */
};
/* The mean over the calls whose value is known, weighted by duration where this is a share. NaN = of none. */
double counter_mean(const struct counter_sums *s, enum counter c);
void counter_sums_add(struct counter_sums *s, const struct profile *p, uint32_t gpu_op);

/* The value of a row of `arg`; NaN where it is no number, or is beyond 1e18. Behind ARG_COUNTERS all of a kernel's are counters. */
double counter_number(const struct profile *p, uint32_t arg);
/* The same; NaN also where it is not named as metrics are. */
double counter_value(const struct profile *p, uint32_t arg);
/* Whether an argument of this name is a metric. */
bool counter_is_metric(struct str name);
/* "" = not stated. O(facts about the run). */
struct str counter_unit(const struct profile *p, struct str metric);

#endif
