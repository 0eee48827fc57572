/* Matrix products: shapes, rates, Tensor Cores. */
#include "report/parts/cost_table.h"

static void gemm_add_columns(struct table *t)
{
	TABLE_COLUMN(t, .id = "b", .title = "B", .help = "how many products a call makes", .type = CELL_I64, .flags = COLUMN_DETAIL);
	TABLE_COLUMN(t, .id = "m", .title = "M", .help = "rows of the result", .type = CELL_I64, .flags = COLUMN_MINOR);
	TABLE_COLUMN(t, .id = "n", .title = "N", .help = "columns of the result", .type = CELL_I64, .flags = COLUMN_MINOR);
	TABLE_COLUMN(t, .id = "k", .title = "K", .help = "length of the sums", .type = CELL_I64, .flags = COLUMN_MINOR);
}

static void gemm_put(struct table *t, unsigned at, const struct cost_row *x)
{
	const int64_t v[] = {x->cost->b, x->cost->m, x->cost->n, x->cost->k};
	for (unsigned i = 0; i < 4 && x->cost->flops >= 0; i++)
		table_set_i64(t, at + i, v[i]);
}

static const struct cost_spec spec = {
	.classes = 1u << OP_GEMM,
	.set = COST_SET_OPS,
	.missing = "no kernel belongs to a matrix product with recorded shapes",
	.absent = "the run has no matrix product: no op with recorded shapes is one, and no kernel by its name",
	.sort = "total_gpu_ns",
	.columns = gemm_add_columns,
	.put = gemm_put,
};

static int gemm_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	return cost_report(&spec, p, args, out, e);
}

const struct report report_gemm = {
	.name = "gemm",
	.title = "Matrix products",
	.asks = ASKS_FASTER,
	.also = "gemms matmul mm matmuls",
	.help = "Each distinct matrix product C = A B by op, sizes, type and direction: how long, how many FLOPs and bytes, which rate, "
	        "whether it ran on Tensor Cores and could, and which share of the GPU's peak that is. Backward counts both products "
	        "(gradients of input and weight) where the trace shows only their forward op. Kernels for which no shapes were "
	        "recorded have a row by their name, without FLOPs.",
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = gemm_run,
};
