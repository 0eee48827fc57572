/* Hardware counters of kernels, which a profiler of kernels measured in another run than the trace's (open/counters_join.h). Each counter is an argument of device work: its
 * name is that of the metric, its value is in base units (open/ncu.h). */
#ifndef OPSCOPE_ANALYSIS_COSTS_COUNTERS_H
#define OPSCOPE_ANALYSIS_COSTS_COUNTERS_H

#include "base/hash.h"
#include "store/profile.h"

/* How the measured launch was found whose counters a kernel has. */
enum counter_match {
	COUNTER_NONE,       /* none was found, or no counters were given */
	COUNTER_BY_ORDER,   /* each kernel was measured as often as it was launched: the k-th launch has the k-th measurement of its name, grid and block */
	COUNTER_BY_RUN,     /* the kernel stands in a row of launches with the names, grids and blocks of a row of measured launches */
	COUNTER_MATCHES,
};
extern const char *const counter_match_name[COUNTER_MATCHES];

/* For each metric that has a unit there is a fact about the run (profile.meta): its key is COUNTER_UNIT and the metric, its value the unit. */
#define COUNTER_UNIT "counter unit: "
/* Kineto's category for the kernels that CUPTI's range profiler measured. They are spans with made-up times: Kineto divides the time of the recording by their number. */
#define COUNTER_RANGES "cuda_profiler_range"

/* What reports show of a kernel. */
enum counter {
	COUNTER_DRAM_BYTES,      /* read from and written to device memory */
	COUNTER_TENSOR_FLOPS,    /* operations of Tensor Cores, a multiply-add as 2 */
	COUNTER_TENSOR_INST,     /* instructions of Tensor Cores */
	COUNTER_OCCUPANCY_PCT,   /* active warps in percent of the most that an SM holds, over the time in which the SM has any */
	COUNTER_SM_PCT,          /* throughput of the SMs in percent of the peak */
	COUNTER_DRAM_PCT,        /* throughput of the device memory in percent of the peak */
	COUNTERS,
};

/* Whether any device work has counters. */
static inline bool counters_any(const struct profile *p) { return profile_has_arg(p, ARG_COUNTERS); }

/* The counters of a piece of device work; NaN = not measured. */
struct counter_values {
	double v[COUNTERS];
};

/* The argument sets that have counters. Thousands of launches may share a set of thousands of metrics, and each set is read once. */
struct counter_sets {
	uint32_t *of_set;        /* by row of arg_set: 1 + where in v; 0 = no counters */
	struct counter_values *v;
	uint32_t n, cap;
};
/* The caller releases *out. O(device work + arguments). */
void counter_sets_find(const struct profile *p, struct counter_sets *out);
void counter_sets_release(struct counter_sets *s);
/* O(1). */
struct counter_values counters_of(const struct counter_sets *s, const struct profile *p, uint32_t gpu_op);

/* Sums over several pieces of work. Pieces whose value is not known are in none of `of`. */
struct counter_sums {
	struct counter_sum {
		double sum, weighted;   /* of the values; of value x duration */
		int64_t ns;             /* durations */
		uint64_t calls;         /* 0 = no value is known */
	} of[COUNTERS];
	uint64_t calls;              /* pieces with any counter */
};
/* The mean over the calls whose value is known. A counter in percent is weighted by duration. NaN = no value is known. */
double counter_mean(const struct counter_sums *s, enum counter c);
void counter_sums_add(struct counter_sums *s, const struct counter_sets *sets, const struct profile *p, uint32_t gpu_op);

/* The value of a row of `arg`; NaN where the value is no number, or is beyond 1e18. All arguments of a kernel that stand behind ARG_COUNTERS are counters. */
double counter_number(const struct profile *p, uint32_t arg);
/* The same; NaN also where the row's name is none of a metric. */
double counter_value(const struct profile *p, uint32_t arg);
/* Whether this is the name of a metric: lower-case letters and digits, then "__". */
bool counter_is_metric(struct str name);
/* The units of all metrics: string id of the metric -> row of profile.meta. The caller releases *units (idmap_release). O(facts about the run). */
void counter_units_find(const struct profile *p, struct idmap *units);
/* The unit of a metric, by its string id; "" = not stated. O(1). */
struct str counter_unit(const struct profile *p, const struct idmap *units, uint32_t metric);

#endif
