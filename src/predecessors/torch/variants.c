/* What opscope shows as versions of torch do (analysis/tree/torch_versions.def). */
#include "analysis/tree/torch_events.h"
#include "predecessors/torch/reports.h"
#include "query/predecessor.h"

static const char *const torch_groupings[] = {"name", "shape", "stack:N", "overload", "event", NULL};
static const char *const torch_module_groupings[] = {"tree", "depth:N", NULL};

static const struct report_variant torch_variants[] = {
#define TORCH_VERSION(id, name, ...)                                                                                                       \
	{.report = "key-averages", .compat = name, .parts = torch_groupings, .rules = &torch_rules[TORCH_##id], .run = torch_key_averages}, \
	{.report = "total-average", .compat = name, .rules = &torch_rules[TORCH_##id], .run = torch_total_average},                         \
	{.report = "function-events", .compat = name, .rules = &torch_rules[TORCH_##id]},
#include "analysis/tree/torch_versions.def"
#undef TORCH_VERSION
	{.report = "module-flops", .compat = "torch", .parts = torch_module_groupings, .run = torch_module_flops},
	{0},
};

const struct predecessor predecessor_torch = {.variants = torch_variants};
