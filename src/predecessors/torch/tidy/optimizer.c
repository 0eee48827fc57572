#include "predecessors/torch/tidy/tidy.h"

static bool torch_optimizer_match(const struct tidy *t, uint32_t i)
{
	struct str name = tidy_name(t, i);
	return str_ends(name, STR("_single_tensor_adam")) || str_ends(name, STR("_single_tensor_sgd")) || str_ends(name, STR("_single_tensor_adamw"));
}

static void torch_optimizer_run(const struct profile *p, struct findings *f)
{
	tidy_run(p, f, TIDY_STACKS, "Optimizer Single Tensor Pattern",
	         "Deteced optimizer running with single tensor implementation. Please enable multi tensor implementation by passing 'foreach=True' into "
	         "optimizer.", torch_optimizer_match);
}

const struct detector detector_tidy_optimizer = {
	.id = "optimizer_single_tensor",
	.title = "An optimizer that works on one tensor at a time",
	.why = "Each parameter costs launches of its own.",
	.fix = "foreach=True or fused=True.",
	.disprove = "The kernels are long.",
	.experts = &tidy_experts,
	.run = torch_optimizer_run,
};
