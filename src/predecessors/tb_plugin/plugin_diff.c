/* The plugin's comparison of two runs. */
#include "analysis/analysis.h"
#include "predecessors/tb_plugin/diff_pairs.h"
#include "predecessors/tb_plugin/plugin.h"

/* The tree of one of the two; the other one is not held meanwhile, so that no two turns are waited for at once. NULL and *e, and the status of the answer. */
static struct tb_tree *plugin_diff_tree(const struct request *r, const char *run, const char *worker, const char *span, struct response *out, struct err *e)
{
	const struct str of[3] = {request_value(r, run), request_value(r, worker), request_value(r, span)};
	struct library_entry *x = library_find_span(r->library, of[0], of[1], of[2]);
	struct tb_tree *t = NULL;
	struct library_turn turn;
	struct library_visit visit;
	if (!x) {
		out->status = 404;
		err_set(e, ERR_DATA, "no profile " STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(of[0]), STR_ARG(of[1]), STR_ARG(of[2]));
		return NULL;
	}
	if (library_visit_begin(&visit, r->library, x, e) < 0) {
		out->status = e->code == ERR_DATA ? 404 : 503;
		return NULL;
	}
	int rc = library_turn_begin(&turn, x, e);
	if (rc == 0) {
		rc = analysis_run(x->profile, PASS_NEST | PASS_CORRELATE, e);
		library_turn_end(&turn);
	}
	if (rc == 0)
		t = tb_tree_new(x->profile, e);
	library_visit_end(&visit);
	out->status = rc < 0 ? 503 : t ? out->status : 404;
	return t;
}

static int plugin_diff_answer(const struct request *r, struct response *out, struct err *e, bool node)
{
	struct tb_tree *left = plugin_diff_tree(r, "run", "worker", "span", out, e);
	struct tb_tree *right = left ? plugin_diff_tree(r, "exp_run", "exp_worker", "exp_span", out, e) : NULL;
	const struct str path = request_value(r, "path");
	int rc = right ? 0 : -1;
	if (right && node && (rc = tb_diff_put_node(left, right, path.n ? path : STR("0"), &out->body, e)) < 0)
		out->status = 404;
	if (right && !node && (rc = tb_diff_put_all(left, right, &out->body, e)) < 0)
		buf_clear(&out->body);
	tb_tree_free(left);
	tb_tree_free(right);
	return rc;
}

static int run_diff(const struct request *r, struct response *out, struct err *e)
{
	return plugin_diff_answer(r, out, e, false);
}

static int run_diffnode(const struct request *r, struct response *out, struct err *e)
{
	return plugin_diff_answer(r, out, e, true);
}

#define PLUGIN_DIFF_PARAMS                                                                                      \
	{"run", "one of runs", NULL, true}, {"worker", "one of workers", NULL, true}, {"span", "one of spans", NULL, true}, \
	{"exp_run", "the other one", NULL, true}, {"exp_worker", "the other one", NULL, true}, {"exp_span", "the other one", NULL, true}
static const struct endpoint_param diff_params[] = {PLUGIN_DIFF_PARAMS, {0}};
static const struct endpoint_param diffnode_params[] = {PLUGIN_DIFF_PARAMS, {"path", "the node, as 0-3-1 (default: 0, the whole)", NULL, false}, {0}};

static const struct endpoint diffnode = {
	.path = PLUGIN_PATH "diffnode",
	.help = "a node of the comparison, with its children",
	.flags = ENDPOINT_LOOSE | ENDPOINT_FRESH, /* the answer depends on two inputs */
	.params = diffnode_params,
	.run = run_diffnode,
};

const struct endpoint endpoint_plugin_diff = {
	.path = PLUGIN_PATH "diff",
	.help = "two runs compared: the op trees of their main threads, node by node",
	.flags = ENDPOINT_LOOSE | ENDPOINT_FRESH,
	.params = diff_params,
	.also = &diffnode,
	.run = run_diff,
};
