#include "store/sampled.h"

#include <strings.h>

static const struct {
	const char *name;
	enum sampled_metric metric;
} sampled_names[] = {
	{"SMs Active", SAMPLED_SM_ACTIVE},
	{"SM Active", SAMPLED_SM_ACTIVE},
	{"SM Issue", SAMPLED_SM_ISSUE},
	{"Tensor Active", SAMPLED_TENSOR_ACTIVE},
	{"Compute Warps in Flight", SAMPLED_WARPS},
	{"DRAM Read Bandwidth", SAMPLED_DRAM_READ},
	{"DRAM Read Throughput", SAMPLED_DRAM_READ},
	{"VRAM Read Bandwidth", SAMPLED_DRAM_READ},
	{"DRAM Write Bandwidth", SAMPLED_DRAM_WRITE},
	{"DRAM Write Throughput", SAMPLED_DRAM_WRITE},
	{"VRAM Write Bandwidth", SAMPLED_DRAM_WRITE},
};

enum sampled_metric sampled_metric_of(struct str name)
{
	static const struct str unit = {" [Throughput %]", sizeof " [Throughput %]" - 1};
	if (str_ends(name, unit))
		name.n -= unit.n;
	for (size_t i = 0; i < sizeof sampled_names / sizeof *sampled_names; i++)
		if (strlen(sampled_names[i].name) == name.n && strncasecmp(sampled_names[i].name, name.p, name.n) == 0)
			return sampled_names[i].metric;
	return SAMPLED_METRICS;
}
