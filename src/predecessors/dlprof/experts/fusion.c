/* No output of DLProf with this finding is known: the text is in its manner. */
#include "predecessors/dlprof/experts/experts.h"

/* What TensorFlow 1 fuses when it may, and what the result is called. */
static const char *const fusible[] = {"BiasAdd", NULL};
static const char *const products[] = {"Conv2D", "MatMul", NULL};
static const char *const fused[] = {"_Fused*", NULL};

static void dlprof_fusion_run(const struct profile *p, struct findings *f)
{
	if (dlprof_is_tensorflow(p) && dlprof_has_type(p, fusible) && dlprof_has_type(p, products) && !dlprof_has_type(p, fused))
		findings_quote(f, STR("Fusion is not enabled: No fused ops detected"),
		                    STR("Try enabling fusion of ops (the graph optimizer's remapping)"));
}

const struct detector detector_dlprof_fusion = {
	.id = "no_fusion_detector",
	.title = "Fusion is disabled (TensorFlow 1)",
	.why = "Fused ops read and write memory once.",
	.fix = "Enable fusion.",
	.disprove = "Nothing in the graph can be fused.",
	.experts = &dlprof_experts,
	.run = dlprof_fusion_run,
};
