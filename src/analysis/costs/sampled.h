/* What a profiler sampled of GPUs many thousand times a second (store/sampled.h): of kernels, and of pieces of time. All means are over time. */
#ifndef OPSCOPE_ANALYSIS_COSTS_SAMPLED_H
#define OPSCOPE_ANALYSIS_COSTS_SAMPLED_H

#include "base/buf.h"
#include "store/profile.h"
#include "store/sampled.h"

/* ---- kernels ---- */

/* So many samples that lie in calls of one kernel say something of them together, where none of the calls has enough by itself. */
enum { SAMPLED_NAME_LEAST = 10 };

/* Whether any kernel has samples. */
static inline bool sampled_any(const struct profile *p) { return profile_has_arg(p, ARG_SAMPLES); }
/* Whether a GPU was sampled, kernels or none. */
bool sampled_anything(const struct profile *p);

struct sampled_values {
	int64_t samples, ns;     /* the time that they are of */
	bool call;               /* they are of this call, else of several of its kernel, grid and block, which say something together */
	uint32_t first, end;     /* rows of arg: the means, by name of the metric */
	double v[SAMPLED_METRICS]; /* percent; NaN = not sampled */
};
/* Of a piece of device work; false = it has none. */
bool sampled_of(const struct profile *p, uint32_t gpu_op, struct sampled_values *out);
/* Read and written, in percent of the memory's peak; NaN = not known. */
static inline double sampled_dram_pct(const double v[SAMPLED_METRICS]) { return v[SAMPLED_DRAM_READ] + v[SAMPLED_DRAM_WRITE]; }
/* The value of an argument from first to end; NaN where it is no number. */
double sampled_value(const struct profile *p, uint32_t arg);
/* "%" or "MHz". */
struct str sampled_unit(struct str metric);

/* Of several kernels. {0} = of none yet. */
struct sampled_sums {
	uint64_t samples, calls; /* calls: that have samples */
	uint64_t told;           /* of these: that have enough by themselves */
	double weighted[SAMPLED_METRICS];
	int64_t ns[SAMPLED_METRICS];
};
/* `one_kernel`: all calls of the kernel are added: samples that are of several of its calls count, too. */
void sampled_sums_add(struct sampled_sums *s, const struct profile *p, uint32_t gpu_op, bool one_kernel);
/* Whether there are enough. */
static inline bool sampled_sums_tell(const struct sampled_sums *s) { return s->told || s->samples >= SAMPLED_NAME_LEAST; }
/* NaN = not known, or too few. */
void sampled_sums_means(const struct sampled_sums *s, double v[SAMPLED_METRICS]);
/* Why there are too few: of kernels the longest of which took longest_ns on that device. */
void sampled_put_why(const struct profile *p, const struct sampled_sums *s, int32_t device, int64_t longest_ns, struct buf *b);

/* ---- time ---- */

struct sampled_curve {
	int32_t device;
	enum sampled_metric metric;
	uint32_t first, n;       /* of its points */
	int64_t point_ns;        /* for which a point holds at most */
};

struct sampled_curves {
	struct sampled_curve *v; /* by device, then metric */
	uint32_t n, cap;
	int64_t *time_ns;        /* points */
	double *value;           /* percent */
};

/* Those with a column in reports. Release with sampled_curves_release. O(points x log). */
void sampled_curves_find(const struct profile *p, struct sampled_curves *out);
void sampled_curves_release(struct sampled_curves *c);

/* Sums over pieces of time: value x ns, and the time that was sampled. {0} = of none yet. */
struct sampled_time {
	double weighted;
	int64_t ns;
};
/* Adds [from_ns, to_ns). O(log points + points in it). */
void sampled_time_add(struct sampled_time *t, const struct sampled_curves *c, const struct sampled_curve *of, int64_t from_ns, int64_t to_ns);

#endif
