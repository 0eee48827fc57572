/* Attention: shapes, rates, what causal masks would save. */
#include "report/parts/cost_table.h"

static const struct cost_spec spec = {
	.classes = 1u << OP_ATTENTION,
	.missing = "no kernel belongs to attention with recorded shapes",
	.absent = "no fused attention kernel was found; `opscope advise` says whether attention runs unfused",
	.sort = "total_gpu_ns",
};

static int attention_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

static const struct report_variant attention_variants[] = {
	{.by = COST_BY_ATTENTION, .run = attention_run},
	{0},
};

const struct report report_attention = {
	.name = "attention",
	.title = "Attention",
	.asks = ASKS_FASTER,
	.also = "sdpa flash",
	.help = "Each distinct scaled dot-product attention by op, shape, type and direction: batch, heads, query and key lengths, head sizes. "
	        "FLOPs count all pairs, as torch.utils.flop_counter does; where a causal mask is known, flops_causal counts those below "
	        "the diagonal. Of a server's attention to cached keys, FLOPs and bytes go by the sums that the range around the step states, of all keys: "
	        "an upper bound for layers that look at a window of them. Attention that is written out as products and a softmax is in report gemm. Kernels for which no shapes were "
	        "recorded have a row by their name, without FLOPs.",
	.variants = attention_variants,
	.sections = (const struct section *const[]){&cost_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = attention_run,
};
