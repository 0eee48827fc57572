/* Metrics of GPUs that a profiler sampled many thousand times a second (store/sampled.h): their means for kernels and for pieces of time. All means are over time. */
#ifndef OPSCOPE_ANALYSIS_COSTS_SAMPLED_H
#define OPSCOPE_ANALYSIS_COSTS_SAMPLED_H

#include "base/buf.h"
#include "store/profile.h"
#include "store/sampled.h"

/* ---- kernels ---- */

/* Samples that lie in several calls of one kernel say something of these calls together, if there are so many. No single call then needs enough samples. */
enum { SAMPLED_NAME_LEAST = 10 };

/* Whether any kernel has samples. (A GPU may have been sampled although no kernel has.) */
static inline bool sampled_any(const struct profile *p) { return profile_has_arg(p, ARG_SAMPLES); }
/* Whether any GPU was sampled. */
bool sampled_anything(const struct profile *p);

struct sampled_values {
	int64_t samples, ns;     /* how many samples; the time that they cover */
	bool call;               /* all samples lie in this call; false: they lie in several calls of its kernel, grid and block, and say something of these together */
	uint32_t first, end;     /* the means: rows of arg, named as the metrics */
	double v[SAMPLED_METRICS]; /* percent; NaN = not sampled */
};
/* The samples of a piece of device work; false = it has none. */
bool sampled_of(const struct profile *p, uint32_t gpu_op, struct sampled_values *out);
/* Bandwidth of reads and writes together, in percent of the memory's peak; NaN = not known. */
static inline double sampled_dram_pct(const double v[SAMPLED_METRICS]) { return v[SAMPLED_DRAM_READ] + v[SAMPLED_DRAM_WRITE]; }
/* The value of a row of arg from first to end; NaN where the value is no number. */
double sampled_value(const struct profile *p, uint32_t arg);
/* The unit of a metric: "%" or "MHz". */
struct str sampled_unit(struct str metric);

/* Sums over several calls. {0} = no call yet. */
struct sampled_sums {
	uint64_t samples, calls; /* calls: those with samples */
	uint64_t told;           /* calls with enough samples of their own */
	double weighted[SAMPLED_METRICS];
	int64_t ns[SAMPLED_METRICS];
};
/* Adds a call. `one_kernel`: the sums are over all calls of one kernel, so that samples of several of its calls count, too. */
void sampled_sums_add(struct sampled_sums *s, const struct profile *p, uint32_t gpu_op, bool one_kernel);
/* Whether there are enough samples for a mean. */
static inline bool sampled_sums_tell(const struct sampled_sums *s) { return s->told || s->samples >= SAMPLED_NAME_LEAST; }
/* The means by metric; NaN = not sampled, or too few samples. */
void sampled_sums_means(const struct sampled_sums *s, double v[SAMPLED_METRICS]);
/* Appends why a kernel has too few samples, by the reason for its GPU `device` or by the duration of its longest call. */
void sampled_put_why(const struct profile *p, const struct sampled_sums *s, int32_t device, int64_t longest_ns, struct buf *b);

/* ---- time ---- */

struct sampled_curve {
	int32_t device;
	enum sampled_metric metric;
	uint32_t first, n;       /* its points */
	int64_t point_ns;        /* the longest time for which a point holds */
};

struct sampled_curves {
	struct sampled_curve *v; /* by device, then metric */
	uint32_t n, cap;
	int64_t *time_ns;        /* points */
	double *value;           /* percent */
};

/* The curves of the metrics that have a column in reports (enum sampled_metric). The caller releases *out. O(points). */
void sampled_curves_find(const struct profile *p, struct sampled_curves *out);
void sampled_curves_release(struct sampled_curves *c);

/* Sums over pieces of time: value x ns, and the time that was sampled. {0} = no time yet. */
struct sampled_time {
	double weighted;
	int64_t ns;
};
/* Adds the curve `of` from from_ns up to to_ns. O(log points + points in that time). */
void sampled_time_add(struct sampled_time *t, const struct sampled_curves *c, const struct sampled_curve *of, int64_t from_ns, int64_t to_ns);

#endif
