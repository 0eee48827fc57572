/* Matrix products: shapes, rates, Tensor Cores. */
#include "report/parts/cost_table.h"

static const struct cost_spec spec = {
	.classes = 1u << OP_GEMM,
	.missing = "no kernel belongs to a matrix product with recorded shapes",
	.absent = "the run has no matrix product: no op with recorded shapes is one, and no kernel by its name",
	.sort = "total_gpu_ns",
};

static int gemm_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

static const struct report_variant gemm_variants[] = {
	{.by = COST_BY_GEMM, .run = gemm_run},
	{0},
};

const struct report report_gemm = {
	.name = "gemm",
	.title = "Matrix products",
	.asks = ASKS_FASTER,
	.also = "gemms matmul mm matmuls",
	.help = "Each distinct matrix product C = A B by op, sizes, type and direction: how long, how many FLOPs and bytes, which rate, "
	        "whether it ran on Tensor Cores and could, and which share of the GPU's peak that is. Backward counts both products "
	        "(gradients of input and weight) where the trace shows only their forward op. Kernels for which no shapes were "
	        "recorded have a row by their name, without FLOPs.",
	.variants = gemm_variants,
	.sections = (const struct section *const[]){&cost_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = gemm_run,
};
