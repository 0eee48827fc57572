#include "predecessors/dlprof/experts/experts.h"

/* What XLA's ops are called in TensorFlow's ranges. */
static const char *const xla_types[] = {"Xla*", "_Xla*", "XLA*", NULL};

static void dlprof_xla_run(const struct profile *p, struct findings *f)
{
	if (dlprof_is_tensorflow(p) && p->ops->n_ops && !dlprof_has_type(p, xla_types))
		findings_quote(f, STR("XLA is not enabled: No XLA ops detected"),
		                    STR("Try enabling XLA. See https://www.tensorflow.org/xla/#enable_xla_for_tensorflow_models for information on how "
		                        "to enable XLA."));
}

const struct detector detector_dlprof_xla = {
	.id = "xla_detector",
	.title = "XLA is not enabled (TensorFlow)",
	.why = "XLA fuses ops into fewer kernels.",
	.fix = "Enable XLA.",
	.disprove = "XLA's ops go by names that DLProf does not know.",
	.experts = &dlprof_experts,
	.run = dlprof_xla_run,
};
