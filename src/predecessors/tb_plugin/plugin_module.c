/* The plugin's modules, and its tree of operators and modules. */
#include "base/mem.h"
#include "predecessors/tb_plugin/diff_tree.h"
#include "predecessors/tb_plugin/plugin.h"
#include "render/number.h"

static void plugin_module_put_module(struct buf *b, const struct table *t, size_t row)
{
	static const char *const members[][2] = {
		{"name", "name"}, {"occurences", "occurences"}, {"operators", "operators"}, {"host_duration", "host_total_time"},
		{"self_host_duration", "host_self_time"}, {"device_duration", "device_total_time"}, {"self_device_duration", "device_self_time"},
	};
	buf_printf(b, "{\"id\":%zu", row);
	for (unsigned i = 0; i < sizeof members / sizeof members[0]; i++) {
		buf_char(b, ',');
		plugin_put_member(b, members[i][0], t, row, members[i][1]);
	}
	double host = table_f64(t, row, (unsigned)table_find_column(t, STR("host_total_time")));
	double device = table_f64(t, row, (unsigned)table_find_column(t, STR("device_total_time")));
	int64_t calls = table_i64(t, row, (unsigned)table_find_column(t, STR("occurences")));
	buf_cstr(b, ",\"avg_duration\":");
	number_shortest(b, calls ? (device > 0 ? device : host) / (double)calls : 0);
	buf_cstr(b, ",\"children\":[");
}

static int run_modules(const struct request *r, struct response *out, struct err *e)
{
	static const char head[] = "{\"columns\":["
		"{\"name\":\"Module Name\",\"type\":\"string\",\"key\":\"name\"},{\"name\":\"Occurences\",\"type\":\"number\",\"key\":\"occurences\"},"
		"{\"name\":\"Operators\",\"type\":\"number\",\"key\":\"operators\"},"
		"{\"name\":\"Host Total Time\",\"type\":\"number\",\"key\":\"host_duration\"},"
		"{\"name\":\"Host Self Time\",\"type\":\"number\",\"key\":\"self_host_duration\"},"
		"{\"name\":\"Device Total Time\",\"type\":\"number\",\"key\":\"device_duration\"},"
		"{\"name\":\"Device Self Time\",\"type\":\"number\",\"key\":\"self_device_duration\"}],\n\"data\":[";
	struct buf *b = &out->body;
	struct table t;
	int64_t open = 0; /* modules whose children are being listed */
	if (plugin_report(r, "modules", NULL, NULL, &t, e) < 0) {
		out->status = e->code == ERR_DATA ? 404 : 0;
		return -1;
	}
	buf_cstr(b, head);
	for (size_t i = 0; i < t.n_rows; i++) {
		int64_t depth = table_i64(&t, i, 0);
		bool first = i == 0 || depth > table_i64(&t, i - 1, 0);
		for (; open > depth; open--)
			buf_cstr(b, "]}");
		buf_cstr(b, first ? "\n" : ",\n");
		plugin_module_put_module(b, &t, i);
		open = depth + 1;
	}
	for (; open > 0; open--)
		buf_cstr(b, "]}");
	buf_cstr(b, "]}\n");
	table_release(&t);
	return 0;
}

static void plugin_module_put_node(struct buf *b, struct str name, int64_t start_ns, int64_t end_ns, const char *type, struct str tid)
{
	buf_cstr(b, "{\"name\":");
	json_put_string(b, name);
	buf_cstr(b, ",\"start_time\":");
	number_shortest(b, (double)start_ns / 1000);
	buf_cstr(b, ",\"end_time\":");
	number_shortest(b, (double)end_ns / 1000);
	buf_printf(b, ",\"type\":\"%s\",\"tid\":", type);
	json_put_string(b, tid);
	buf_cstr(b, ",\"children\":[");
}

/* The plugin's word for it: the category that the node was recorded with. */
static const char *plugin_module_type(const struct tb_node *x)
{
	switch ((enum tb_kind)x->kind) {
	case TB_MODULE: return "Module";
	case TB_STEP: return "ProfilerStep";
	case TB_BACKWARD: return "backward";
	case TB_OP: case TB_LOADER: case TB_OPTIMIZER: break;
	}
	return x->is_op ? "Operator" : "user_annotation";
}

struct plugin_module_visit {
	const struct tb_list *kids;
	uint32_t next;
};

static void plugin_module_put_kids(struct buf *b, const struct profile *p, const struct tb_tree *t, const struct tb_list *kids)
{
	struct plugin_module_visit *open = NULL;
	size_t n = 0, cap = 0;
	MEM_PUSH(open, n, cap, (struct plugin_module_visit){kids, 0});
	while (n) {
		struct plugin_module_visit *at = &open[n - 1];
		if (at->next == at->kids->n) {
			buf_cstr(b, --n ? "]}" : "");
			continue;
		}
		buf_cstr(b, at->next ? ",\n" : "\n");
		const uint32_t node = at->kids->v[at->next++];
		const struct tb_node *x = &t->v[node];
		plugin_module_put_node(b, tb_name(t, node), x->start_ns, x->end_ns, plugin_module_type(x), profile_str(p, x->tid));
		MEM_PUSH(open, n, cap, (struct plugin_module_visit){&x->kids, 0});
	}
	mem_free(open);
}

static int run_tree(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	const struct profile *p = r->entry->profile;
	struct tb_tree *t = analysis_run(r->entry->profile, PASS_NEST | PASS_CORRELATE, e) < 0 ? NULL : tb_tree_new(p, e);
	if (!t)
		return -1;
	const struct tb_thread *root = &t->thread[t->root];
	plugin_module_put_node(b, STR("CallTreeRoot"), root->start_ns, root->end_ns, "Python", profile_str(p, root->tid));
	plugin_module_put_kids(b, p, t, &root->kids);
	buf_cstr(b, "]}\n");
	tb_tree_free(t);
	return 0;
}

static const struct endpoint tree = {
	.path = PLUGIN_PATH "tree",
	.help = "operators, modules and the backward pass of each module, inside each other: of the first thread, as the plugin has them",
	.flags = PLUGIN_FLAGS,
	.run = run_tree,
};

const struct endpoint endpoint_plugin_module = {
	.path = PLUGIN_PATH "module",
	.help = "modules inside each other",
	.flags = PLUGIN_FLAGS,
	.also = &tree,
	.run = run_modules,
};
