/* GPU_METRICS: metrics of GPUs that Nsight Systems samples, a row for each metric and sample. The rows are read into columns. When all are read, each metric becomes a curve
 * (store/sampled.h), whose points are thinned where there are many, and kernels get the means over the samples that lie in them. Then the columns are freed. */
#ifndef OPSCOPE_INPUT_NSYS_NSYS_METRICS_H
#define OPSCOPE_INPUT_NSYS_NSYS_METRICS_H

#include "input/nsys/nsys.h"
#include "store/sampled.h"

#include <assert.h>

/* Times of samples of one GPU. Metrics that were sampled together share a series. */
struct nsys_metrics_series {
	int32_t device;
	int64_t *time_ns;
	uint32_t n, cap;
	bool disordered;
	int64_t interval_ns;     /* the median time between two samples; 0 = fewer than two samples */
};

/* A metric of a GPU. */
struct nsys_metrics_track {
	uint32_t name;           /* string id of the metric */
	enum nsys_metrics_scale { NSYS_METRICS_UNKNOWN, NSYS_METRICS_PERCENT, NSYS_METRICS_HERTZ } scale;
	int32_t device;
	uint32_t series;         /* value[i] is of time_ns[i] of this series */
	float *value;            /* percent, or MHz */
	uint32_t n, cap;
	uint64_t unsound;        /* rows with an impossible value */
};

struct nsys_metrics {
	struct intern keys;      /* (typeId, metricId) -> its track + 1 */
	struct nsys_metrics_track *track;
	uint32_t n_tracks, cap_tracks;
	struct nsys_metrics_series *series;
	uint32_t n_series, cap_series;
	uint64_t unnamed, unscaled; /* rows of a metric without a name; of a metric whose unit is not known */
};

/* Whether no sample is missing before or behind sample i: then it is the mean over the time since the sample before. 1 <= i < n - 1. */
static inline bool nsys_metrics_sound(const struct nsys_metrics_series *s, uint32_t i)
{
	assert(i && i + 1 < s->n);
	const int64_t before = s->time_ns[i] - s->time_ns[i - 1], behind = s->time_ns[i + 1] - s->time_ns[i];
	return before > 0 && behind > 0 && before <= 2 * s->interval_ns && behind <= 2 * s->interval_ns;
}

/* nsys_sampled.c: gives kernels the means of the samples that lie in them. The series are in order of time. */
void nsys_sampled_join(struct nsys *n, const struct nsys_metrics *m);

#endif
