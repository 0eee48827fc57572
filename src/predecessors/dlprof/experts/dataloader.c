#include "base/search.h"
#include "predecessors/dlprof/experts/experts.h"

#define DALI "Consider using NVIDIA DALI, a library that is a high performance alternative to built-in data loaders and data iterators. " \
	"Learn more here: https://developer.nvidia.com/DALI"

/* DALI marks what it does with ranges of these names. */
static bool has_dali(const struct profile *p)
{
	return ANY_WHERE(i, 0, p->strings.n,
	                 str_has(profile_str(p, i), STR("[DALI]")) || str_starts(profile_str(p, i), STR("Dali")) || str_starts(profile_str(p, i), STR("DALI")));
}

/* DLProf's outputs have the first finding where the data loader takes more than the CPU and the rest, and the second where it does not. */
static void dlprof_dataloader_run(const struct profile *p, struct findings *f)
{
	const struct dlprof_run *r = dlprof_run_of(f, p);
	const double *ns = r->usage.ns;
	if (!dlprof_is_pytorch(p))
		return;
	if (ns[USAGE_DATALOADER] > ns[USAGE_CPU] && ns[USAGE_DATALOADER] > ns[USAGE_OTHER])
		findings_quote(f, arena_printf(&f->arena, "%.1f%% of the aggregated run was spent in the dataloader while not simultaneously running "
		                                 "on the GPU", dlprof_pct(r, ns[USAGE_DATALOADER])),
		                    STR("Focus on reducing time spent in the training data input process. This could be time spent in file reading, "
		                        "preprocessing and augmentation or file transfer.\n" DALI));
	else if (!has_dali(p))
		findings_quote(f, STR("No DALI ops detected"), STR(DALI));
}

const struct detector detector_dlprof_dataloader = {
	.id = "dataloader_detector",
	.title = "The data loader takes most of the time; or DALI is not used",
	.why = "The GPU waits for data.",
	.fix = "Load data faster; consider DALI.",
	.disprove = "The run reads no data: DLProf recommends DALI to every PyTorch run that does not use it.",
	.experts = &dlprof_experts,
	.run = dlprof_dataloader_run,
};
