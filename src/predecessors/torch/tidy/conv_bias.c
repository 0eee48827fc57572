#include "predecessors/torch/tidy/tidy.h"
#include "store/torch_names.h"

/* aten::conv2d with a bias; and what stands beside the module around it is a batch normalisation. */
static bool torch_conv_bias_match(const struct tidy *t, uint32_t i)
{
	struct str bias;
	if (!tidy_is(t, i, "aten::conv2d") || !tidy_item(t, i, ARG_INPUT_TYPES, 2, &bias) || !bias.n)
		return false;
	uint32_t module = i;
	for (int up = 0; up < TIDY_DEPTH && t->parent[module] != ROW_NONE && !str_starts(tidy_name(t, module), STR(TORCH_MODULE "Conv2d")); up++)
		module = t->parent[module];
	uint32_t next = t->after[module];
	return next != ROW_NONE && str_starts(tidy_name(t, next), STR(TORCH_MODULE "BatchNorm2d"));
}

static void torch_conv_bias_run(const struct profile *p, struct findings *f)
{
	tidy_run(p, f, TIDY_SHAPES, "Enabling Bias in Conv2d Followed By BatchNorm Pattern",
	         "Detected bias enabled in Conv2d that is followed by BatchNorm2d. Please set 'bias=False' in Conv2d.", torch_conv_bias_match);
}

const struct detector detector_tidy_conv_bias = {
	.id = "conv_bias_batchnorm",
	.title = "A convolution with bias before a batch normalisation",
	.why = "The normalisation takes the bias away again.",
	.fix = "bias=False.",
	.disprove = "Something else uses the result, too.",
	.experts = &tidy_experts,
	.run = torch_conv_bias_run,
};
