#include "predecessors/torch/tidy/tidy.h"

static void torch_tf32_run(const struct profile *p, struct findings *f)
{
	findings_missing_aside(f, "a trace does not say torch.backends.cuda.matmul.allow_tf32",
	                       "opscope's own tf32-off, which looks at the kernels");
}

const struct detector detector_tidy_tf32 = {
	.id = "fp32_matmul",
	.title = "Matrix products that may not use TF32",
	.why = "From compute capability 8.0, Tensor Cores multiply float32 as TF32.",
	.fix = "Allow TF32.",
	.disprove = "float32 precision is needed.",
	.experts = &tidy_experts,
	.run = torch_tf32_run,
};
