/* The trace itself, as Chrome trace JSON, with the plugin's counters of utilization and SM efficiency, and with opscope's others. */
#include "predecessors/tb_plugin/plugin.h"
#include "serve/chrome.h"

static int plugin_trace_run(const struct request *r, struct response *out, struct err *e)
{
	out->type = "application/json";
	out->packed = true;
	return chrome_packed(r->entry->profile, true, &out->body, e);
}

const struct endpoint endpoint_plugin_trace = {
	.path = PLUGIN_PATH "trace",
	.help = "the trace as Chrome trace JSON with counters over time, always packed by gzip",
	.flags = PLUGIN_FLAGS | ENDPOINT_FRESH,
	.run = plugin_trace_run,
};
