/* What opscope shows as the TensorBoard plugin does. */
#include "predecessors/tb_plugin/distributed_tables.h"
#include "predecessors/tb_plugin/tables.h"
#include "query/predecessor.h"
#include "report/parts/kernel_groups.h"
#include "report/parts/operators.h"

#define TB_PLUGIN(name, ...) {.report = name, .compat = "tb-plugin", __VA_ARGS__}
static const struct report_variant tb_variants[] = {
	TB_PLUGIN("kernels", .group_by = "name", .by = KERNELS_BY_NAME, .run = tb_kernels),
	TB_PLUGIN("kernels", .group_by = "op", .by = KERNELS_BY_LAUNCH, .run = tb_kernels), /* the second grouping is by op and launch properties together */
	TB_PLUGIN("kernels", .group_by = "launch", .by = KERNELS_BY_LAUNCH, .run = tb_kernels),
	TB_PLUGIN("operators", .group_by = "name", .by = OPERATORS_BY_NAME, .run = tb_operators),
	TB_PLUGIN("operators", .group_by = "shape", .by = OPERATORS_BY_SHAPE, .run = tb_operators),
	TB_PLUGIN("operators", .group_by = "stack", .by = OPERATORS_BY_STACK, .run = tb_operators),
	TB_PLUGIN("operators", .group_by = "shape-stack", .by = OPERATORS_BY_SHAPES_AND_STACK, .run = tb_operators), /* its stacks of an op with given shapes */
	TB_PLUGIN("modules", .group_by = "tree", .run = tb_modules),
	TB_PLUGIN("memory", .run = tb_memory),
	TB_PLUGIN("overview", .run = tb_overview),
	TB_PLUGIN("steps", .run = tb_steps),
	TB_PLUGIN("devices", .run = tb_devices),
	TB_PLUGIN("overlap", .gather = &tb_gather_overlap),
	TB_PLUGIN("ranks", .gather = &tb_gather_wait),
	TB_PLUGIN("collectives", .group_by = "kind", .gather = &tb_gather_comm),
	{0},
};

const struct predecessor predecessor_tb_plugin = {.variants = tb_variants};
