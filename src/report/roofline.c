/* What each op could take at the GPU's peaks, and what that would gain. */
#include "report/parts/cost_table.h"

static const struct cost_spec spec = {
	.missing = "no kernel belongs to an op with a cost model and recorded shapes",
	.sort = "gain_ns",
};

static int roofline_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

static const struct report_variant roofline_variants[] = {
	{.group_by = "op", .by = COST_BY_OP},
	{.group_by = "shape", .by = COST_BY_SHAPE},
	{.group_by = "kernel", .by = COST_BY_KERNEL},
	{0},
};

const struct report report_roofline = {
	.name = "roofline",
	.title = "Roofline",
	.asks = ASKS_FASTER,
	.also = "bound bounds",
	.help = "For each op with a cost model the time that it would take at the peaks of the GPU, the longer of FLOPs / peak and bytes / bandwidth, and what "
	        "could be gained at most, the largest gain first. The peak is of the op's type, on Tensor Cores where its kernels used them or type and shape "
	        "allow it. Cells are empty where the GPU's peaks or the op's FLOPs and bytes are not known; ops without a model are left out, unless counters or samples tell their traffic with the memory. --group-by=shape tells shapes apart, --group-by=kernel "
	        "goes by kernel.",
	.variants = roofline_variants,
	.sections = (const struct section *const[]){&cost_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = roofline_run,
};
