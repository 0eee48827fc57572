/* The plugin's Distributed view: the workers of a run, recorded in one span, together. */
#include "analysis/analysis.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "predecessors/tb_plugin/distributed_tables.h"
#include "predecessors/tb_plugin/plugin.h"
#include "render/number.h"

#include <stdlib.h>

/* ---- the workers ---- */

struct plugin_distributed_entries {
	struct str run, span;
	struct library_entry **v;
	unsigned n, cap;
};

static void plugin_distributed_see(void *context, const struct library_entry *x)
{
	struct plugin_distributed_entries *s = context;
	if (str_eq(x->run, s->run) && str_eq(x->span, s->span) && x->state != ENTRY_GONE)
		MEM_PUSH(s->v, s->n, s->cap, (struct library_entry *)(uintptr_t)x);
}

static int plugin_distributed_by_worker(const void *a, const void *b)
{
	const struct library_entry *x = *(struct library_entry *const *)a, *y = *(struct library_entry *const *)b;
	return str_cmp(x->worker, y->worker) ?: str_cmp(x->key, y->key);
}

/* A file that cannot be read is left out, as the plugin did. */
static int plugin_distributed_take(const struct request *r, struct library_entry *x, struct tb_workers *w, struct err *e)
{
	struct library_turn turn;
	struct library_visit visit;
	if (library_visit_begin(&visit, r->library, x, e) < 0)
		return e->code == ERR_DATA ? 0 : -1;
	int rc = library_turn_begin(&turn, x, e);
	if (rc == 0) {
		rc = analysis_run(x->profile, PASS_NEST | PASS_CORRELATE, e);
		library_turn_end(&turn);
	}
	if (rc == 0) {
		struct tb_worker *worker = tb_worker_new(x->profile, x->worker, w->n);
		MEM_PUSH(w->v, w->n, w->cap, worker);
	}
	library_visit_end(&visit);
	return rc;
}

/* The workers of the run and span, in order of name and matched; the caller's (tb_workers_free). NULL and *e, and the status of the answer. */
static struct tb_workers *plugin_distributed_workers(const struct request *r, struct response *out, struct err *e)
{
	struct plugin_distributed_entries s = {.run = request_value(r, "run"), .span = request_value(r, "span")};
	struct tb_workers *w = NEW(struct tb_workers);
	int rc = 0;
	w->first = INT64_MIN;
	w->last = INT64_MAX;
	library_look(r->library, plugin_distributed_see, &s);
	if (s.n)
		qsort(s.v, s.n, sizeof *s.v, plugin_distributed_by_worker);
	for (unsigned i = 0; i < s.n && rc == 0; i++)
		rc = plugin_distributed_take(r, s.v[i], w, e);
	mem_free(s.v);
	if (rc < 0) {
		out->status = 503;
	} else {
		rc = w->n ? tb_distributed_match(w->v, w->n, e) : err_set(e, ERR_DATA, "no profile " STR_FMT "/All/" STR_FMT, STR_ARG(s.run), STR_ARG(s.span));
		out->status = rc < 0 ? 404 : out->status;
	}
	if (rc == 0)
		return w;
	tb_workers_free(w);
	return NULL;
}

/* ---- which spans have the view ---- */

struct plugin_span {
	struct str name;
	unsigned shape;
	bool is_off;
};

struct plugin_spans {
	struct str run;
	struct intern names;
	struct plugin_span *v;
	unsigned n, cap;
};

static void plugin_distributed_see_span(void *context, const struct library_entry *x)
{
	struct plugin_spans *s = context;
	if (!str_eq(x->run, s->run) || x->state == ENTRY_GONE || x->state == ENTRY_FAILED)
		return;
	unsigned i = intern_str(&s->names, x->span) - 1, shape = plugin_mark_shape(x->marks);
	if (i == s->n)
		MEM_PUSH(s->v, s->n, s->cap, (struct plugin_span){.name = x->span, .shape = shape});
	s->v[i].is_off |= !shape || shape != s->v[i].shape;
}

struct str *plugin_distributed_spans(struct library *l, struct str run, unsigned *n)
{
	struct plugin_spans s = {.run = run};
	intern_init(&s.names);
	library_look(l, plugin_distributed_see_span, &s);
	struct str *found = NEW_ARRAY(s.n, struct str);
	*n = 0;
	for (unsigned i = 0; i < s.n; i++)
		if (!s.v[i].is_off)
			found[(*n)++] = s.v[i].name;
	mem_free(s.v);
	intern_release(&s.names);
	return found;
}

/* ---- overlap, waittime: by step ---- */

/* {"all": {"worker0": [...], ...}, "3": {...}}: a number for each column from TB_KEYS on. */
static void plugin_distributed_put_steps(struct buf *b, const struct table *t)
{
	buf_cstr(b, "\"data\":{");
	for (size_t i = 0; i < t->n_rows; i++) {
		struct str step = table_str(t, i, 0);
		bool first = !i || !str_eq(step, table_str(t, i - 1, 0));
		if (first) {
			buf_cstr(b, i ? "},\n" : "\n");
			json_put_string(b, step);
			buf_cstr(b, ":{");
		} else {
			buf_char(b, ',');
		}
		json_put_string(b, table_str(t, i, 1));
		buf_cstr(b, ":[");
		for (unsigned c = TB_KEYS; c < t->n_columns; c++) {
			buf_cstr(b, c > TB_KEYS ? "," : "");
			plugin_put_cell(b, t, i, (int)c);
		}
		buf_char(b, ']');
	}
	buf_cstr(b, t->n_rows ? "}}" : "}");
}

static int plugin_distributed_run_steps(const struct request *r, const char *title, const char *legends, void (*fill)(const struct tb_workers *w, struct table *t),
                                        struct response *out, struct err *e)
{
	struct table t;
	struct tb_workers *w = plugin_distributed_workers(r, out, e);
	if (!w)
		return -1;
	table_init(&t, "distributed", title);
	fill(w, &t);
	buf_printf(&out->body, "{\"metadata\":{\"title\":\"%s\",\"legends\":[%s],\"units\":\"us\"},\n", title, legends);
	plugin_distributed_put_steps(&out->body, &t);
	buf_cstr(&out->body, "}\n");
	table_release(&t);
	tb_workers_free(w);
	return 0;
}

static int plugin_distributed_run_overlap(const struct request *r, struct response *out, struct err *e)
{
	return plugin_distributed_run_steps(r, "Computation/Communication Overview", "\"Computation\",\"Overlapping\",\"Communication\",\"Other\"", tb_overlap_table, out, e);
}

static int plugin_distributed_run_wait(const struct request *r, struct response *out, struct err *e)
{
	return plugin_distributed_run_steps(r, "Synchronizing/Communication Overview", "\"Data Transfer Time\",\"Synchronizing Time\"", tb_wait_table, out, e);
}

/* ---- commops ---- */

static void plugin_distributed_put_columns(struct buf *b, const struct table *t)
{
	buf_cstr(b, "{\"columns\":[");
	for (unsigned c = TB_KEYS - 1; c < t->n_columns; c++) {
		buf_cstr(b, c >= TB_KEYS ? "," : "");
		plugin_put_column(b, &t->data[c].col, false);
	}
	buf_cstr(b, "],\"rows\":[");
}

static void plugin_distributed_put_ops(struct buf *b, const struct table *t)
{
	buf_cstr(b, "\"data\":{");
	for (size_t i = 0; i < t->n_rows; i++) {
		bool first = !i || !str_eq(table_str(t, i, 0), table_str(t, i - 1, 0));
		if (first) {
			buf_cstr(b, i ? "]},\n" : "\n");
			json_put_string(b, table_str(t, i, 0));
			buf_char(b, ':');
			plugin_distributed_put_columns(b, t);
		}
		buf_cstr(b, first ? "[" : ",[");
		for (unsigned c = TB_KEYS - 1; c < t->n_columns; c++) {
			buf_cstr(b, c >= TB_KEYS ? "," : "");
			plugin_put_cell(b, t, i, (int)c);
		}
		buf_char(b, ']');
	}
	buf_cstr(b, t->n_rows ? "]}}" : "}");
}

static int plugin_distributed_run_ops(const struct request *r, struct response *out, struct err *e)
{
	struct table t;
	struct tb_workers *w = plugin_distributed_workers(r, out, e);
	if (!w)
		return -1;
	table_init(&t, "distributed", "Communication Operations Stats");
	tb_comm_table(w, &t);
	buf_cstr(&out->body, "{\"metadata\":{\"title\":\"Communication Operations Stats\"},\n");
	plugin_distributed_put_ops(&out->body, &t);
	buf_cstr(&out->body, "}\n");
	table_release(&t);
	tb_workers_free(w);
	return 0;
}

/* ---- gpuinfo ---- */

/* A worker in the tree of machines: "HOST_PID..." is of a machine and a process; any other is a machine, and the process a running number. */
struct plugin_place {
	struct str node;
	struct str process;
	const struct tb_worker *worker;
};

static struct plugin_place plugin_distributed_place(const struct request *r, const struct tb_worker *w, unsigned *index)
{
	struct str s = w->name;
	for (size_t i = s.n; i-- > 0;) {
		size_t end = i + 1;
		while (end < s.n && s.p[end] >= '0' && s.p[end] <= '9')
			end++;
		if (s.p[i] == '_' && end > i + 1)
			return (struct plugin_place){{s.p, i}, {s.p + i + 1, end - i - 1}, w};
	}
	return (struct plugin_place){s, arena_printf(r->arena, "%u", (*index)++), w};
}

static int plugin_distributed_by_place(const void *a, const void *b)
{
	const struct plugin_place *x = a, *y = b;
	return str_cmp(x->node, y->node) ?: str_cmp(x->process, y->process) ?: str_cmp(x->worker->name, y->worker->name);
}

/* As Python writes a float that was rounded to two digits: "79.33", "40.0". */
static void plugin_distributed_put_memory(struct buf *b, int64_t bytes)
{
	struct buf text = {0};
	number_shortest(&text, round_digits((double)bytes / 1024 / 1024 / 1024, 2));
	if (!memchr(text.p, '.', text.n) && !memchr(text.p, 'e', text.n))
		buf_cstr(&text, ".0");
	buf_cstr(&text, " GB");
	json_put_text(b, "Memory", buf_view(&text));
	buf_printf(b, ",\"Memory Raw\":%lld", (long long)bytes);
	buf_release(&text);
}

static void plugin_distributed_put_gpu(struct buf *b, const struct tb_gpu *g)
{
	bool any = g->name.n > 0;
	buf_printf(b, "\"GPU%d\":{", g->ordinal);
	if (any)
		json_put_text(b, "Name", g->name);
	if (g->memory_bytes > 0) {
		buf_cstr(b, any ? "," : "");
		plugin_distributed_put_memory(b, g->memory_bytes);
		any = true;
	}
	if (g->cc_major >= 0 && g->cc_minor >= 0)
		buf_printf(b, "%s\"Compute Capability\":\"%d.%d\"", any ? "," : "", g->cc_major, g->cc_minor);
	buf_char(b, '}');
}

static void plugin_distributed_put_places(struct buf *b, const struct plugin_place *v, uint32_t n)
{
	buf_cstr(b, "{\"metadata\":{\"title\":\"Device Information\"},\n\"data\":{");
	for (uint32_t i = 0; i < n; i++) {
		bool first = !i || !str_eq(v[i].node, v[i - 1].node);
		buf_cstr(b, !first ? "," : i ? "},\n" : "\n");
		if (first) {
			json_put_string(b, v[i].node);
			buf_cstr(b, ":{");
		}
		buf_printf(b, "\"Process " STR_FMT "\":{", STR_ARG(v[i].process));
		for (uint32_t g = 0; g < v[i].worker->n_gpus; g++) {
			buf_cstr(b, g ? "," : "");
			plugin_distributed_put_gpu(b, &v[i].worker->gpu[g]);
		}
		buf_char(b, '}');
	}
	buf_cstr(b, "}}}\n");
}

static int plugin_distributed_run_gpus(const struct request *r, struct response *out, struct err *e)
{
	unsigned index = 0;
	uint32_t n = 0, kept = 0;
	struct tb_workers *w = plugin_distributed_workers(r, out, e);
	if (!w)
		return -1;
	struct plugin_place *v = NEW_ARRAY(w->n, struct plugin_place);
	for (uint32_t i = 0; i < w->n; i++)
		if (w->v[i]->describes_gpus)
			v[n++] = plugin_distributed_place(r, w->v[i], &index);
	if (n)
		qsort(v, n, sizeof *v, plugin_distributed_by_place);
	for (uint32_t i = 0; i < n; i++) /* of one machine and process the last worker counts */
		if (i + 1 == n || !str_eq(v[i].node, v[i + 1].node) || !str_eq(v[i].process, v[i + 1].process))
			v[kept++] = v[i];
	if (kept)
		plugin_distributed_put_places(&out->body, v, kept);
	else
		buf_cstr(&out->body, "null\n");
	mem_free(v);
	tb_workers_free(w);
	return 0;
}

static const struct endpoint_param distributed_params[] = {{"run", "one of runs", NULL, true}, {"span", "one of spans", NULL, true}, {0}};

static const struct endpoint overlap = {
	.path = PLUGIN_PATH "distributed/overlap",
	.help = "computation and communication of each worker and step, in us",
	.flags = ENDPOINT_RUN | ENDPOINT_LOOSE,
	.params = distributed_params,
	.run = plugin_distributed_run_overlap,
};

static const struct endpoint wait = {
	.path = PLUGIN_PATH "distributed/waittime",
	.help = "data transfer and synchronizing of each worker and step, in us",
	.flags = ENDPOINT_RUN | ENDPOINT_LOOSE,
	.params = distributed_params,
	.also = &overlap,
	.run = plugin_distributed_run_wait,
};

static const struct endpoint ops = {
	.path = PLUGIN_PATH "distributed/commops",
	.help = "a table of communication ops for each worker",
	.flags = ENDPOINT_RUN | ENDPOINT_LOOSE,
	.params = distributed_params,
	.also = &wait,
	.run = plugin_distributed_run_ops,
};

const struct endpoint endpoint_plugin_distributed = {
	.path = PLUGIN_PATH "distributed/gpuinfo",
	.help = "the GPUs of each machine and process",
	.flags = ENDPOINT_RUN | ENDPOINT_LOOSE,
	.params = distributed_params,
	.also = &ops,
	.run = plugin_distributed_run_gpus,
};
