#include <math.h>

#include "analysis/gpu_metrics.h"
#include "analysis/steps.h"
#include "base/buf.h"
#include "detect/detect.h"

/* The plugin's threshold (the plugin's data.py). */
static const double TOO_LITTLE = 0.5, SEVERE = 0.25;

extern const struct detector detector_low_gpu_utilization;

static void report(struct findings *f, const struct gpu_metrics_list *l, unsigned steps, struct buf *list, double lowest)
{
	int64_t busiest = 0;
	for (unsigned i = 0; i < l->n; i++)
		if (l->v[i].busy_ns > busiest)
			busiest = l->v[i].busy_ns;
	struct finding *x = findings_add(f, &detector_low_gpu_utilization, lowest < SEVERE ? FINDING_HIGH : FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "Low GPU utilization: " STR_FMT " of the step time with a kernel running",
	                          STR_ARG(buf_view(list)));
	x->evidence = arena_printf(&f->arena, "%.3f ms in %u steps; the busiest device has work during %.3f ms of them",
	                           (double)(l->end_ns - l->start_ns) / 1e6, steps, (double)busiest / 1e6);
	x->has_gain = true; /* no step can get shorter than its device work */
	x->gain_ns_per_step = (l->end_ns - l->start_ns - busiest) / steps;
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	(void)e;
	if (!p->gpu_op.rows.n || !p->steps->n) {
		findings_missing(f, &detector_low_gpu_utilization,
		                 p->steps->n ? "the input has no device work" : "the input has no steps");
		return 0;
	}
	struct gpu_metrics_list l;
	struct buf list = {0};
	double lowest = 1;
	gpu_metrics_measure(p, OPTREE_DEFAULT, NULL, NULL, NULL, &l);
	for (unsigned i = 0; i < l.n; i++) {
		double u = l.v[i].utilization;
		if (isnan(u) || u >= TOO_LITTLE)
			continue;
		buf_printf(&list, "%sGPU %d %.1f %%", list.n ? ", " : "", l.v[i].device, u * 100);
		lowest = u < lowest ? u : lowest;
	}
	if (list.n)
		report(f, &l, p->steps->n, &list, lowest);
	buf_release(&list);
	gpu_metrics_release(&l);
	return 0;
}

const struct detector detector_low_gpu_utilization = {
	.id = "low-gpu-utilization",
	.title = "The GPU is idle most of the time",
	.why = "A GPU that runs nothing for more than half of the step costs as much as a busy one.",
	.fix = "Increase the batch size, so that each launch brings more work; see `overview` for what the GPU waits for.",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
