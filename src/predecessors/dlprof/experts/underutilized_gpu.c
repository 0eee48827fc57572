/* The text about GPUs without work is in DLProf's manner; that about too little of it, DLProf's. */
#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "base/search.h"
#include "predecessors/dlprof/experts/experts.h"

/* The guide's threshold, percent. */
static const double TOO_LITTLE = 50;

static bool dlprof_underutilized_gpu_has_work(const struct profile *p, int32_t device)
{
	return ANY_WHERE(i, 0, p->launch.rows.n, p->launch.device[i] == device);
}

static void report_unused(const struct profile *p, struct findings *f)
{
	int32_t *unused = NEW_ARRAY(p->device.rows.n, int32_t);
	uint8_t *foreign = NEW_ARRAY(p->device.rows.n, uint8_t);
	unsigned n = 0, own = p->device.rows.n - rank_foreign_gpus(p, foreign);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		if (!foreign[i] && !dlprof_underutilized_gpu_has_work(p, p->device.id[i]))
			unused[n++] = p->device.id[i];
	if (own < p->device.rows.n)
		dlprof_note_hints(f, p, HINT_GPUS);
	if (n && n < own)
		findings_quote(f, arena_printf(&f->arena, "The following GPUs are visible but unused: " STR_FMT,
		                                 STR_ARG(dlprof_device_list(f, unused, n))),
		                    STR("Use all of the GPUs, or restrict the visible ones by setting the environment variable CUDA_VISIBLE_DEVICES"));
	mem_free(unused);
	mem_free(foreign);
}

/* What the time without the GPU went to most. */
static struct str dlprof_underutilized_gpu_advice(struct findings *f, const struct dlprof_run *r)
{
	const double *ns = r->usage.ns;
	if (ns[USAGE_CPU] >= ns[USAGE_DATALOADER] && ns[USAGE_CPU] >= ns[USAGE_OTHER])
		return arena_printf(&f->arena, "CPU has the highest (non-GPU) usage at %.1f%%. Consider swapping ops that are running on the CPU for "
		                    "equivalent GPU ops", dlprof_pct(r, ns[USAGE_CPU]));
	bool loader = ns[USAGE_DATALOADER] >= ns[USAGE_OTHER];
	return arena_printf(&f->arena, "%s has the highest (non-GPU) usage at %.1f%%. Investigate the dataloading pipeline as this often indicates "
	                    "too much time is being spent here", loader ? "Dataloader" : "\"Other\"",
	                    dlprof_pct(r, ns[loader ? USAGE_DATALOADER : USAGE_OTHER]));
}

static void dlprof_underutilized_gpu_run(const struct profile *p, struct findings *f)
{
	const struct dlprof_run *r = dlprof_run_of(f, p);
	double pct = dlprof_pct(r, r->usage.kernel_busy_ns);
	if (!p->gpu_op.rows.n)
		return;
	report_unused(p, f);
	if (pct < TOO_LITTLE)
		findings_quote(f, arena_printf(&f->arena, "The GPU is underutilized: Only %.1f%% of the profiled time is spent on GPU kernel operations",
		                                 pct), dlprof_underutilized_gpu_advice(f, r));
}

const struct detector detector_dlprof_underutilized_gpu = {
	.id = "underutilized_gpu_detector",
	.title = "GPUs without work, or with too little",
	.why = "Kernels run for less than half of the time.",
	.fix = "Look at what the time goes to most, CPU, data loader or other.",
	.disprove = "The recording holds much start-up: DLProf counts all of it.",
	.experts = &dlprof_experts,
	.run = dlprof_underutilized_gpu_run,
};
