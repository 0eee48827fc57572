#include "predecessors/dlprof/experts/experts.h"

static void dlprof_cudnn_benchmark_run(const struct profile *p, struct findings *f)
{
	if (model_config_is(p, "cudnn_benchmark_disabled"))
		findings_quote(f, STR("Convolution operations were detected but torch.backends.cudnn.benchmark was not enabled."),
		                    STR("Try setting torch.backends.cudnn.benchmark = True in your network. For best performance, the input shapes should "
		                        "be relatively stable."));
}

const struct detector detector_dlprof_cudnn_benchmark = {
	.id = "cudnn_benchmark_detector",
	.title = "A convolution ran with cuDNN's benchmark off (PyTorch)",
	.why = "With it, cuDNN takes the fastest algorithm for each shape.",
	.fix = "Enable it.",
	.disprove = "The shapes change all the time.",
	.experts = &dlprof_experts,
	.run = dlprof_cudnn_benchmark_run,
};
