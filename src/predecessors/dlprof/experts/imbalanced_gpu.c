/* No output of DLProf with this finding is known: the text is in its manner. */
#include "analysis/time/busy.h"
#include "base/mem.h"
#include "predecessors/dlprof/experts/experts.h"

/* The guide gives no figure. A GPU that works for less than half as long as the busiest one is used much less. */
static const double MUCH_LESS = 0.5;
enum { DEVICES_MAX = 64 };

/* Working times of devices that have work; *n of them. */
static void dlprof_imbalanced_gpu_measure(const struct profile *p, int32_t *device, int64_t *ns, unsigned *n)
{
	uint8_t *of = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int32_t d = p->launch.device[p->gpu_op.launch[g]];
		unsigned i = 0;
		while (i < *n && device[i] != d)
			i++;
		if (i == *n && *n == DEVICES_MAX)
			continue;
		if (i == *n)
			device[(*n)++] = d;
		of[g] = (uint8_t)(i + 1);
	}
	for (unsigned i = 0; *n > 1 && i < *n; i++) {
		struct busy b;
		busy_measure(p, of, (uint8_t)(i + 1), NULL, &b);
		ns[i] = b.ns[BUSY_BUSY];
	}
	mem_free(of);
}

static void dlprof_imbalanced_gpu_run(const struct profile *p, struct findings *f)
{
	int32_t device[DEVICES_MAX], less[DEVICES_MAX];
	int64_t ns[DEVICES_MAX], most = 0;
	unsigned n = 0, n_less = 0;
	dlprof_imbalanced_gpu_measure(p, device, ns, &n);
	for (unsigned i = 0; n > 1 && i < n; i++)
		most = ns[i] > most ? ns[i] : most;
	for (unsigned i = 0; n > 1 && i < n; i++)
		if ((double)ns[i] < MUCH_LESS * (double)most)
			less[n_less++] = device[i];
	if (n_less)
		findings_quote(f, arena_printf(&f->arena, "GPU utilization is imbalanced: GPUs " STR_FMT " are used much less than the others",
		                                 STR_ARG(dlprof_device_list(f, less, n_less))),
		                    STR("Balance the workload so that all GPUs are used evenly"));
}

const struct detector detector_dlprof_imbalanced_gpu = {
	.id = "imbalanced_gpu_detector",
	.title = "One or more GPUs are used much less than others",
	.why = "The others wait for the busiest.",
	.fix = "Balance the work.",
	.disprove = "The GPUs do different parts of the work by design.",
	.experts = &dlprof_experts,
	.run = dlprof_imbalanced_gpu_run,
};
