/* How well GPUs were used (gpu_metrics_parser.py of the plugin): by what the trace states, in the time from the first step to the last. */
#include "predecessors/tb_plugin/rules.h"

#include "analysis/names/names.h"

static enum tri tb_gpu_metrics_uses_tc(const struct profile *p, uint32_t gpu)
{
	return name_is(p, p->gpu_op.name[gpu], NAME_TC_LISTED) ? TRI_YES : TRI_NO;
}

/* Nothing is said of SMs when no kernel lies within the span. */
static void tb_gpu_metrics_finish(struct gpu_metrics *m, double load_ns, double occupancy_time, int64_t span)
{
	if (load_ns > 0)
		m->sm_efficiency = load_ns / (double)span;
	if (m->occupancy_known_ns > 0)
		m->occupancy_pct = occupancy_time / (double)m->occupancy_known_ns;
	if (m->kernels)
		m->tc_ratio = m->kernel_ns > 0 ? (double)m->tc_ns / (double)m->kernel_ns : 0;
}

const struct gpu_metrics_rules tb_gpu_metrics = {.stated = true, .whole_trace = true, .uses_tc = tb_gpu_metrics_uses_tc, .finish = tb_gpu_metrics_finish};
