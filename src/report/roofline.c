/* What each op could take at the GPU's peaks, and what that would gain. */
#include "report/cost_table.h"


static const enum cost_by by[] = {COST_BY_OP, COST_BY_SHAPE, COST_BY_KERNEL};
static const char *const groupings[] = {"op", "shape", "kernel", NULL};
static const char *const compats[] = {"tracelens", NULL};

static const struct cost_spec spec = {
	.set = COST_SET_ROOFLINE,
	.groupings = groupings,
	.by = by,
	.missing = "no kernel belongs to an op with a cost model and recorded shapes",
	.sort = "gain_ns",
};

static int roofline_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

const struct report report_roofline = {
	.name = "roofline",
	.title = "Roofline",
	.asks = ASKS_FASTER,
	.also = "bound bounds",
	.help = "For each op with a cost model the time that it would take at the peaks of the GPU, the longer of FLOPs / peak and bytes / bandwidth, "
	        "and what could be gained by that, most first. The peak is of the op's type, on Tensor Cores where its kernels "
	        "used them or type and shape allow it. What is not known of the GPU or the op stays empty. --group-by=shape tells shapes "
	        "apart, --group-by=kernel goes by kernel.",
	.group_by = groupings,
	.compat = compats,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = roofline_run,
};
