/* What was sampled of each GPU while the program ran: counters of category "gpu_sample", each with a device and a value (input/capture/capture_gpu.c;
 * the collector asks NVML once a second). Nothing here is of one process alone: a GPU's power is that of all who use it. */
#ifndef OPSCOPE_ANALYSIS_TIME_GPU_SAMPLES_H
#define OPSCOPE_ANALYSIS_TIME_GPU_SAMPLES_H

#include "store/profile.h"

enum gpu_metric { GPU_UTILIZATION, GPU_MEMORY_UTILIZATION, GPU_MEMORY_USED, GPU_SM_CLOCK, GPU_MEMORY_CLOCK, GPU_POWER, GPU_TEMPERATURE, GPU_METRICS };

struct gpu_metric_info {
	const char *counter;     /* its name in the marks */
	const char *title, *unit; /* of value / scale */
	int64_t scale;
};
extern const struct gpu_metric_info gpu_metric_info[GPU_METRICS];

enum gpu_reason_class { GPU_REASON_IDLE, GPU_REASON_CHOSEN, GPU_REASON_POWER, GPU_REASON_HEAT, GPU_REASON_SLOWDOWN, GPU_REASON_CLASSES };
struct gpu_reason {
	unsigned bit;
	const char *id, *meaning;
	enum gpu_reason_class class;
};
extern const struct gpu_reason gpu_reasons[]; /* ends with id NULL */
enum { GPU_REASON_BITS = 64 };

struct gpu_samples {
	int32_t device;
	struct gpu_metric_values {
		uint64_t n;
		int64_t least, most, last;
		double sum;
	} metric[GPU_METRICS];
	uint64_t told;                     /* samples that say what lowers the clocks */
	uint64_t reason[GPU_REASON_BITS];  /* of these: with that bit */
	uint64_t class[GPU_REASON_CLASSES]; /* of these: with a bit of that class */
	/* SM clock of samples with a reason of POWER, HEAT or SLOWDOWN, and of those without one and not idle. */
	struct gpu_metric_values slowed, free;
	int64_t first_ns, last_ns;
};

struct gpu_samples_list {
	struct gpu_samples *v;   /* by device */
	uint32_t n;
	uint64_t odd;            /* counters without a device or a number */
};

/* Of all of the profile (of a part of it: analysis/steps/slice.h). O(n). */
void gpu_samples_measure(const struct profile *p, struct gpu_samples_list *out);
void gpu_samples_release(struct gpu_samples_list *l);

/* Each sample of one metric. */
struct gpu_sample {
	int32_t device;
	int64_t time_ns, value;
};
/* By device, then time. Returns how many; the array is the caller's (mem_free). */
uint32_t gpu_samples_of(const struct profile *p, enum gpu_metric metric, struct gpu_sample **out);

#endif
