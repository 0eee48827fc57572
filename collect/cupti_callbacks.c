/* What CUPTI calls back for: cudaProfilerStart and Stop, and nodes of CUDA graphs. A graph's kernels run long after they were captured, for a call
 * (cudaGraphLaunch) that says nothing of where they come from. So each node that is made or cloned leaves a record in the chunk of the thread that
 * does it, whose open ranges say where. */
#include "cupti.h"
#include "writer.h"

static void on_graph_node(const struct cupti_resource_data *r, bool cloned)
{
	const struct cupti_graph_data *d = r->descriptor;
	uint64_t node = 0, original = 0;
	uint32_t graph = 0;
	if (!d || cupti.call.GetGraphNodeId(d->node, &node) != CUPTI_OK || !node)
		return;
	if (cloned && cupti.call.GetGraphNodeId(d->originalNode, &original) != CUPTI_OK)
		original = 0;
	if (!cupti.call.GetGraphId || !d->graph || cupti.call.GetGraphId(d->graph, &graph) != CUPTI_OK)
		graph = 0;
	/* Also while nothing is recorded: what is captured before the window may be replayed in it. */
	struct writer *w = writer_any();
	if (!w)
		return;
	struct wire_graph_node n = {.head = writer_head(WIRE_GRAPH_NODE, 0, graph, sizeof n), .time_ns = now_ns(), .node = node, .original = original};
	writer_append(w, &n, sizeof n);
	writer_leave(w);
}

/* Of cudaProfilerStart the window begins at the end, of cudaProfilerStop it ends at the beginning. */
static void on_call(uint32_t domain, uint32_t cbid, uint32_t site)
{
	bool runtime = domain == CUPTI_DOMAIN_RUNTIME;
	if (cbid == (runtime ? CBID_PROFILER_START : CBID_DRIVER_PROFILER_START) && site == CUPTI_SITE_EXIT)
		control_cuda_profiler(true);
	if (cbid == (runtime ? CBID_PROFILER_STOP : CBID_DRIVER_PROFILER_STOP) && site == CUPTI_SITE_ENTER)
		control_cuda_profiler(false);
}

static void on_callback(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	(void)userdata;
	if (!data || !cupti_is_on())
		return;
	if (domain == CUPTI_DOMAIN_RESOURCE && (cbid == CUPTI_GRAPHNODE_CREATED || cbid == CUPTI_GRAPHNODE_CLONED))
		on_graph_node(data, cbid == CUPTI_GRAPHNODE_CLONED);
	else if (domain == CUPTI_DOMAIN_RUNTIME || domain == CUPTI_DOMAIN_DRIVER)
		on_call(domain, cbid, *(const uint32_t *)data);
}

cupti_callback *const cupti_on_callback = on_callback;

void cupti_enable_callbacks(bool graph_nodes)
{
	static const struct { uint32_t domain, cbid; } callbacks[] = {
		{CUPTI_DOMAIN_RUNTIME, CBID_PROFILER_START}, {CUPTI_DOMAIN_RUNTIME, CBID_PROFILER_STOP},
		{CUPTI_DOMAIN_DRIVER, CBID_DRIVER_PROFILER_START}, {CUPTI_DOMAIN_DRIVER, CBID_DRIVER_PROFILER_STOP},
		{CUPTI_DOMAIN_RESOURCE, CUPTI_GRAPHNODE_CREATED}, {CUPTI_DOMAIN_RESOURCE, CUPTI_GRAPHNODE_CLONED},
	};
	unsigned n = sizeof callbacks / sizeof callbacks[0];
	for (unsigned i = 0; i < n; i++)
		if (callbacks[i].domain != CUPTI_DOMAIN_RESOURCE || (graph_nodes && cupti.call.GetGraphNodeId))
			cupti.call.EnableCallback(1, cupti.subscriber, callbacks[i].domain, callbacks[i].cbid);
}
