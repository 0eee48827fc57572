/* Which runs there are, and which views, workers and spans each has. A run is read before its views are told. */
#include "base/mem.h"
#include "predecessors/tb_plugin/plugin.h"

struct plugin_runs_names {
	const struct request *r;
	struct buf *b;
	struct str run, worker, last;
	unsigned view, views;
	bool loading, any;
};

static void plugin_runs_put_name(struct plugin_runs_names *n, struct str name)
{
	if (n->any && str_eq(name, n->last))
		return;
	buf_cstr(n->b, n->any ? "," : "");
	json_put_string(n->b, name);
	n->any = true;
	n->last = name;
}

static void see_run(void *context, const struct library_entry *x)
{
	struct plugin_runs_names *n = context;
	n->loading |= x->state == ENTRY_LOADING || x->state == ENTRY_QUEUED;
	if (x->state != ENTRY_GONE)
		plugin_runs_put_name(n, x->run);
}

static int run_runs(const struct request *r, struct response *out, struct err *e)
{
	struct plugin_runs_names n = {.r = r, .b = &out->body};
	buf_cstr(n.b, "{\"runs\":[");
	library_look(r->library, see_run, &n);
	buf_printf(n.b, "],\"loading\":%s}\n", n.loading ? "true" : "false");
	return 0;
}

static void see_views(void *context, const struct library_entry *x)
{
	struct plugin_runs_names *n = context;
	if (str_eq(x->run, n->run))
		n->views |= plugin_mark_views(x->marks);
}

static int run_views(const struct request *r, struct response *out, struct err *e)
{
	struct plugin_runs_names n = {.r = r, .b = &out->body, .run = request_value(r, "run")};
	unsigned spans;
	library_look(r->library, see_views, &n);
	mem_free(plugin_distributed_spans(r->library, n.run, &spans));
	n.views |= spans ? 1u << VIEW_DISTRIBUTED : 0;
	buf_char(n.b, '[');
	for (unsigned i = 0; i < PLUGIN_VIEWS; i++)
		if (n.views >> i & 1)
			plugin_runs_put_name(&n, str_from(plugin_view_name[i]));
	buf_cstr(n.b, "]\n");
	return 0;
}

static void plugin_runs_see_worker(void *context, const struct library_entry *x)
{
	struct plugin_runs_names *n = context;
	if (str_eq(x->run, n->run) && (x->marks & n->view))
		plugin_runs_put_name(n, x->worker);
}

static int run_workers(const struct request *r, struct response *out, struct err *e)
{
	struct plugin_runs_names n = {.r = r, .b = &out->body, .run = request_value(r, "run")};
	struct str view = request_value(r, "view");
	for (unsigned i = 0; i < PLUGIN_VIEWS; i++)
		if (str_eqc(view, plugin_view_name[i]))
			n.view = 1u << i;
	unsigned spans = 0;
	buf_char(n.b, '[');
	if (n.view == 1u << VIEW_DISTRIBUTED)
		mem_free(plugin_distributed_spans(r->library, n.run, &spans));
	else
		library_look(r->library, plugin_runs_see_worker, &n);
	if (spans)
		plugin_runs_put_name(&n, STR(PLUGIN_ALL));
	buf_cstr(n.b, "]\n");
	return 0;
}

static void see_span(void *context, const struct library_entry *x)
{
	struct plugin_runs_names *n = context;
	if (str_eq(x->run, n->run) && str_eq(x->worker, n->worker) && x->state != ENTRY_GONE)
		plugin_runs_put_name(n, x->span);
}

static void plugin_runs_put_distributed(struct plugin_runs_names *n)
{
	unsigned spans;
	struct str *span = plugin_distributed_spans(n->r->library, n->run, &spans);
	for (unsigned i = 0; i < spans; i++)
		plugin_runs_put_name(n, span[i]);
	mem_free(span);
}

static int run_spans(const struct request *r, struct response *out, struct err *e)
{
	struct plugin_runs_names n = {.r = r, .b = &out->body, .run = request_value(r, "run"), .worker = request_value(r, "worker")};
	buf_char(n.b, '[');
	library_look(r->library, see_span, &n);
	if (!n.any && str_eqc(n.worker, PLUGIN_ALL))
		plugin_runs_put_distributed(&n);
	buf_cstr(n.b, "]\n");
	if (n.any)
		return 0;
	out->status = 404;
	return err_set(e, ERR_USAGE, "no worker '" STR_FMT "' in run '" STR_FMT "'", STR_ARG(n.worker), STR_ARG(n.run));
}

static const struct endpoint_param views_params[] = {{"run", "one of runs", NULL, true}, {0}};
static const struct endpoint_param workers_params[] = {{"run", "one of runs", NULL, true}, {"view", "one of views", NULL, true}, {0}};
static const struct endpoint_param spans_params[] = {{"run", "one of runs", NULL, true}, {"worker", "one of workers", NULL, true}, {0}};

static const struct endpoint spans = {
	.path = PLUGIN_PATH "spans",
	.help = "the spans of a worker",
	.flags = ENDPOINT_RUN | ENDPOINT_FRESH | ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.params = spans_params,
	.run = run_spans,
};

static const struct endpoint workers = {
	.path = PLUGIN_PATH "workers",
	.help = "the workers of a run that have a view",
	.flags = ENDPOINT_RUN | ENDPOINT_FRESH | ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.params = workers_params,
	.also = &spans,
	.run = run_workers,
};

static const struct endpoint views = {
	.path = PLUGIN_PATH "views",
	.help = "the views that any worker of a run has",
	.flags = ENDPOINT_RUN | ENDPOINT_FRESH | ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.params = views_params,
	.also = &workers,
	.run = run_views,
};

const struct endpoint endpoint_plugin_runs = {
	.path = PLUGIN_PATH "runs",
	.help = "the runs, and whether any is being read",
	.flags = ENDPOINT_FRESH | ENDPOINT_LOOSE,
	.queue = QUEUE_QUICK,
	.also = &views,
	.run = run_runs,
	.look = plugin_views_of,
};
