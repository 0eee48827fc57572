/* GPU_METRICS: what Nsight Systems samples of each GPU, a row for each metric and sample. They are read into columns, and become points of a curve for each metric (store/sampled.h), thinned
 * where there are many, and means over the samples that lie in a kernel. The rows are freed then. */
#ifndef OPSCOPE_INPUT_NSYS_NSYS_METRICS_H
#define OPSCOPE_INPUT_NSYS_NSYS_METRICS_H

#include "input/nsys/nsys.h"
#include "store/sampled.h"

/* The times of samples of one GPU, which the metrics that were sampled together share. */
struct nsys_metrics_series {
	int32_t device;
	int64_t *time_ns;
	uint32_t n, cap;
	bool disordered;
	int64_t interval_ns;     /* the median; 0 = fewer than two samples */
};

struct nsys_metrics_track {
	uint32_t name;           /* string id of the metric */
	enum nsys_metrics_scale { NSYS_METRICS_UNKNOWN, NSYS_METRICS_PERCENT, NSYS_METRICS_HERTZ } scale;
	int32_t device;
	uint32_t series;         /* its values are of the first n times of that */
	float *value;            /* percent, or MHz */
	uint32_t n, cap;
	uint64_t unsound;        /* rows whose value cannot be */
};

struct nsys_metrics {
	struct intern keys;      /* (typeId, metricId) -> its track + 1 */
	struct nsys_metrics_track *track;
	uint32_t n_tracks, cap_tracks;
	struct nsys_metrics_series *series;
	uint32_t n_series, cap_series;
	uint64_t unnamed, unscaled; /* rows */
};

/* Whether sample i is of the time that it seems to be of: none is missing before or behind it. */
static inline bool nsys_metrics_sound(const struct nsys_metrics_series *s, uint32_t i)
{
	const int64_t before = s->time_ns[i] - s->time_ns[i - 1], behind = s->time_ns[i + 1] - s->time_ns[i];
	return before > 0 && behind > 0 && before <= 2 * s->interval_ns && behind <= 2 * s->interval_ns;
}

/* nsys_sampled.c: gives kernels the means of the samples that lie in them. The series are in order of time. */
void nsys_sampled_join(struct nsys *n, const struct nsys_metrics *m);

#endif
