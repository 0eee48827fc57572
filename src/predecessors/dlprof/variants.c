/* What opscope shows as DLProf does. */
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/reports.h"
#include "predecessors/dlprof/stated.h"
#include "predecessors/dlprof/system.h"

#define DLPROF(name, ...) {.report = name, .compat = "dlprof", __VA_ARGS__}
static const struct report_variant dlprof_variants[] = {
	DLPROF("summary", .run = dlprof_summary),
	DLPROF("steps", .run = dlprof_steps),
	DLPROF("kernels", .group_by = "op", .run = dlprof_kernels_by_op, .needs = PASS_OPS),
	DLPROF("kernels", .group_by = "instance", .run = dlprof_kernels_by_instance, .needs = PASS_OPS),
	DLPROF("ops", .group_by = "op", .run = dlprof_ops),
	DLPROF("op-types", .run = dlprof_op_types),
	DLPROF("groups", .run = dlprof_groups),
	DLPROF("tensor-cores", .run = dlprof_tensor_cores),
	{0},
};

const struct predecessor predecessor_dlprof = {
	.name = "dlprof",
	.title = "DLProf",
	.variants = dlprof_variants,
	.window = dlprof_window,
	.facts = dlprof_facts,
	.stated = &dlprof_stated,
};
