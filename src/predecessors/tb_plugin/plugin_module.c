/* The plugin's modules, and its tree of operators of the main thread. */
#include "analysis/steps/steps.h"
#include "analysis/tree/optree.h"
#include "predecessors/tb_plugin/plugin.h"
#include "predecessors/tb_plugin/rules.h"
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

/* The thread with the steps; else that with the most ops. ROW_NONE: there is no op. */
static uint32_t main_track(const struct profile *p, const struct optree *t)
{
	uint32_t *count = NULL, best = ROW_NONE;
	struct arena a = {0};
	count = ARENA_ARRAY(&a, p->track.rows.n + 1, uint32_t);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t track = p->span.track[t->span[i]];
		if (t->kind[i] == NODE_STEP) {
			best = track;
			break;
		}
		if (++count[track] > (best == ROW_NONE ? 0 : count[best]))
			best = track;
	}
	arena_release(&a);
	return best;
}

static void plugin_module_put_times(struct buf *b, const char *name, int64_t start_ns, int64_t end_ns, const char *type, struct str tid)
{
	buf_cstr(b, "{\"name\":");
	json_put_string(b, str_from(name));
	buf_cstr(b, ",\"start_time\":");
	number_shortest(b, (double)start_ns / 1000);
	buf_cstr(b, ",\"end_time\":");
	number_shortest(b, (double)end_ns / 1000);
	buf_printf(b, ",\"type\":\"%s\",\"tid\":", type);
	json_put_string(b, tid);
	buf_cstr(b, ",\"children\":[");
}

static const char *const type_of[] = {
	[NODE_OP] = "Operator", [NODE_EXCLUDED_OP] = "Operator", [NODE_STEP] = "ProfilerStep", [NODE_DATALOADER] = "DataLoader",
	[NODE_OPTIMIZER] = "Optimizer", [NODE_COMM] = "Communication", [NODE_USER] = "User_Annotation",
};

/* Nodes come in pre-order: `depth` of each from its parent's. */
static void plugin_module_put_nodes(struct buf *b, const struct profile *p, const struct optree *t, uint32_t track, struct str tid, struct arena *a)
{
	uint32_t *depth = ARENA_ARRAY(a, t->n + 1, uint32_t), open = 0;
	bool first = true;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t span = t->span[i];
		if (p->span.track[span] != track)
			continue;
		depth[i] = t->parent[i] == ROW_NONE ? 0 : depth[t->parent[i]] + 1;
		first |= depth[i] > (open ? open - 1 : 0) || !open;
		for (; open > depth[i]; open--) {
			buf_cstr(b, "]}");
			first = false;
		}
		buf_cstr(b, first ? "\n" : ",\n");
		struct str name = arena_str(a, profile_str(p, p->span.name[span]));
		plugin_module_put_times(b, name.p, p->span.start_ns[span], span_end(p, span), type_of[t->kind[i]], tid);
		open = depth[i] + 1;
		first = true;
	}
	for (; open > 0; open--)
		buf_cstr(b, "]}");
}

static int run_tree(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	const struct profile *p = r->entry->profile;
	if (analysis_run(r->entry->profile, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	struct optree *t = optree_new(p, &tb_optree);
	uint32_t track = main_track(p, t);
	if (track == ROW_NONE) {
		optree_free(t);
		return err_set(e, ERR_DATA, "the input holds no operators");
	}
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t i = 0; i < t->n; i++)
		if (p->span.track[t->span[i]] == track) {
			first = p->span.start_ns[t->span[i]] < first ? p->span.start_ns[t->span[i]] : first;
			last = span_end(p, t->span[i]) > last ? span_end(p, t->span[i]) : last;
		}
	struct str tid = profile_str(p, p->track.tid_text[track]);
	plugin_module_put_times(b, "CallTreeRoot", first, last, "python", tid);
	plugin_module_put_nodes(b, p, t, track, tid, r->arena);
	buf_cstr(b, "]}\n");
	optree_free(t);
	return 0;
}

static const struct endpoint tree = {
	.path = PLUGIN_PATH "tree",
	.help = "the operators of the main thread, inside each other",
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
