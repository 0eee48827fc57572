/* What the plugin answered about two runs together, which opscope does not compare yet: 404 with the reason, as the plugin did for a run without such a view. */
#include "predecessors/tb_plugin/plugin.h"

static int plugin_absent_refuse(const struct request *r, struct response *out, struct err *e)
{
	out->status = 404;
	return err_set(e, ERR_DATA, STR_FMT ": there is no view that compares runs", STR_ARG(r->path));
}

static const struct endpoint_param diff_params[] = {
	{"run", "one of runs", NULL, true},         {"worker", "one of workers", NULL, true},         {"span", "one of spans", NULL, true},
	{"exp_run", "the other one", NULL, true}, {"exp_worker", "the other one", NULL, true}, {"exp_span", "the other one", NULL, true},
	{0},
};

static const struct endpoint diffnode = {
	.path = PLUGIN_PATH "diffnode",
	.help = "not there: answers 404",
	.flags = ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.params = diff_params,
	.run = plugin_absent_refuse,
};

const struct endpoint endpoint_plugin_absent = {
	.path = PLUGIN_PATH "diff",
	.help = "not there: answers 404",
	.flags = ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.params = diff_params,
	.also = &diffnode,
	.run = plugin_absent_refuse,
};
