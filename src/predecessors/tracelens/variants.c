/* What opscope shows as TraceLens does. The reports on FLOPs and bytes are opscope's, by TraceLens' formulas (rules.def beside this file). */
#include "predecessors/tracelens/rules.h"
#include "predecessors/tracelens/tables.h"
#include "query/predecessor.h"
#include "report/parts/cost_table.h"
#include "report/parts/short_kernels.h"

static const struct short_bins tracelens_bins = {.n = 100};

#define TRACELENS(name, ...) {.report = name, .compat = "tracelens", __VA_ARGS__}
static const struct report_variant tracelens_variants[] = {
	TRACELENS("gpu-timeline", .run = tracelens_gpu_timeline),
	TRACELENS("costs", .run = tracelens_costs),
	TRACELENS("gemm", .by = COST_BY_GEMM, .rules = &tracelens_rules),
	TRACELENS("conv", .by = COST_BY_CONV, .rules = &tracelens_rules),
	TRACELENS("attention", .by = COST_BY_ATTENTION, .rules = &tracelens_rules),
	TRACELENS("roofline", .group_by = "op", .by = COST_BY_OP, .rules = &tracelens_rules),
	TRACELENS("roofline", .group_by = "shape", .by = COST_BY_SHAPE, .rules = &tracelens_rules),
	TRACELENS("roofline", .group_by = "kernel", .by = COST_BY_KERNEL, .rules = &tracelens_rules),
	TRACELENS("short-kernels", .group_by = "duration", .by = SHORT_BY_DURATION, .rules = &tracelens_bins),
	{0},
};

const struct predecessor predecessor_tracelens = {.variants = tracelens_variants};
