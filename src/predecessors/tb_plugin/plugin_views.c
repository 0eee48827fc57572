/* Which of its views the plugin would show of a profile. */
#include "base/search.h"
#include "predecessors/tb_plugin/distributed.h"
#include "predecessors/tb_plugin/plugin.h"

static bool has_kernel(const struct profile *p)
{
	return ANY_WHERE(i, 0, p->gpu_op.rows.n, p->gpu_op.kind[i] == GPU_KERNEL);
}

static bool has_span(const struct profile *p, enum span_kind kind, struct str start)
{
	return ANY_WHERE(i, 0, p->span.rows.n,
	                 (kind == SPAN_KINDS || p->span.kind[i] == kind) && str_starts(profile_str(p, p->span.name[i]), start));
}

unsigned plugin_views_of(const struct profile *p)
{
	unsigned views = 1 << VIEW_OVERVIEW | 1 << VIEW_OPERATOR | 1 << VIEW_TRACE;
	if (has_kernel(p))
		views |= 1 << VIEW_KERNEL;
	if (p->memory.rows.n)
		views |= 1 << VIEW_MEMORY;
	if (has_span(p, SPAN_KINDS, STR("[pl][module]")))
		views |= 1 << VIEW_LIGHTNING;
	else if (has_span(p, SPAN_PYTHON, STR("nn.Module: ")))
		views |= 1 << VIEW_MODULE;
	uint32_t shape = tb_worker_shape(p);
	return views | (shape ? (shape << PLUGIN_VIEWS & PLUGIN_MARKS) | 1u << PLUGIN_VIEWS : 0);
}
