/* Convolutions: shapes, rates, Tensor Cores. */
#include "report/parts/cost_table.h"

static const struct cost_spec spec = {
	.classes = 1u << OP_CONV,
	.missing = "no kernel belongs to a convolution with recorded shapes",
	.absent = "the run has no convolution: no op with recorded shapes is one, and no kernel by its name",
	.sort = "total_gpu_ns",
};

static int conv_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

static const struct report_variant conv_variants[] = {
	{.by = COST_BY_CONV, .run = conv_run},
	{0},
};

const struct report report_conv = {
	.name = "conv",
	.title = "Convolutions",
	.asks = ASKS_FASTER,
	.also = "convs convolution convolutions",
	.help = "Each distinct convolution by op, shape, type and direction: N images of C channels and size D x H x W, K filters of T x R x S, "
	        "an output of O x P x Q. How long, how many FLOPs and bytes, which rate, whether it ran on Tensor Cores and could, and "
	        "which share of the GPU's peak that is. Time includes kernels that convert or copy for it. Kernels for which no shapes were "
	        "recorded have a row by their name, without FLOPs.",
	.variants = conv_variants,
	.sections = (const struct section *const[]){&cost_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = conv_run,
};
