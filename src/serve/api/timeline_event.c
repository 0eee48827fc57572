/* One event in full: its arguments, what is around it, and what it is linked with. */
#include "analysis/names/stacks.h"
#include "analysis/tree/fwdbwd.h"
#include "analysis/tree/op_graph.h"
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_times.h"

enum { AROUND_MAX = 200, LAUNCHED_MAX = 200, GRAPH_MAX = 48, GRAPH_LEVELS = 2, GRAPH_EDGES_OWN = 200, GRAPH_EDGES = 400 };

struct about {
	const struct timeline *t;
	const struct profile *p;
	struct buf *b;
};

static void serve_timeline_event_put_args(struct about *x, uint32_t set)
{
	const struct profile *p = x->p;
	uint32_t from = p->arg_set.first[set], to = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	buf_cstr(x->b, ",\n\"args\":[");
	for (uint32_t i = from; i < to; i++) {
		buf_cstr(x->b, i > from ? ",[" : "[");
		json_put_string(x->b, profile_str(p, p->arg.key[i]));
		buf_char(x->b, ',');
		json_put_string(x->b, profile_str(p, p->arg.value[i]));
		buf_char(x->b, ']');
	}
	buf_char(x->b, ']');
}

static void put_link(struct about *x, const char *name, bool device, uint32_t row)
{
	if (row == ROW_NONE)
		return;
	buf_printf(x->b, ",\n\"%s\":", name);
	timeline_put_row(x->b, x->t, device, row);
}

static void serve_timeline_event_put_launch(struct about *x, uint32_t row)
{
	uint32_t i = x->p->gpu_op.launch[row];
	if (i == ROW_NONE)
		return;
	buf_cstr(x->b, ",\n\"launch\":");
	timeline_put_launch(x->b, x->p, i);
}

/* Ranges around it, the innermost first. */
static void put_around(struct about *x, uint32_t span)
{
	buf_cstr(x->b, ",\n\"around\":[");
	unsigned n = 0;
	for (uint32_t i = span == ROW_NONE ? ROW_NONE : x->p->span.parent[span]; i != ROW_NONE && n < AROUND_MAX; i = x->p->span.parent[i]) {
		buf_cstr(x->b, n++ ? "," : "");
		timeline_put_row(x->b, x->t, false, i);
	}
	buf_char(x->b, ']');
}

/* Device work that the range launched itself (an API call) or by its calls (an op), the first of it. */
static void put_launched(struct about *x, uint32_t span)
{
	const struct gpu_ops *g = &x->p->gpu_op;
	uint64_t n = 0;
	int64_t total_ns = 0;
	buf_cstr(x->b, ",\n\"launched\":[");
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->call[i] != span && g->op[i] != span)
			continue;
		total_ns += g->dur_ns[i];
		if (n++ >= LAUNCHED_MAX)
			continue;
		buf_cstr(x->b, n > 1 ? "," : "");
		timeline_put_row(x->b, x->t, true, i);
	}
	buf_cstr(x->b, "],");
	json_put_number(x->b, "launched_count", (int64_t)n);
	buf_char(x->b, ',');
	json_put_number(x->b, "launched_ns", total_ns);
}

static void put_stack(struct about *x, uint32_t span)
{
	struct stacks *s = stacks_new(x->p);
	struct buf text = {0};
	stacks_text(s, stacks_of(s, span), &text);
	if (text.n) {
		buf_cstr(x->b, ",\n");
		json_put_text(x->b, "stack", buf_view(&text));
	}
	buf_release(&text);
	stacks_free(s);
}

/* The backward ops of a forward op. */
static void serve_timeline_event_put_backward(struct about *x, const struct fwdbwd *f, uint32_t row)
{
	unsigned n = 0;
	uint32_t listed = 0;
	for (uint32_t i = 0; i < x->p->span.rows.n && n < LAUNCHED_MAX; i++) {
		if (!rankset_has(&f->linked, i))
			continue;
		if (f->forward[listed++] != row)
			continue;
		buf_cstr(x->b, n++ ? "," : ",\n\"backward\":[");
		timeline_put_row(x->b, x->t, false, i);
	}
	buf_cstr(x->b, n ? "]" : "");
}

/* The ops around an op in the op graph; the op itself is the first. */
struct neighbours {
	uint32_t row[GRAPH_MAX];
	unsigned n;
};

static unsigned neighbours_find(const struct neighbours *v, uint32_t row)
{
	unsigned i = 0;
	while (i < v->n && v->row[i] != row)
		i++;
	return i;
}

static void neighbours_add(struct neighbours *v, uint32_t row)
{
	if (row != ROW_NONE && v->n < GRAPH_MAX && neighbours_find(v, row) == v->n)
		v->row[v->n++] = row;
}

/* Adds the ops from which the inputs of ops [from, to) of *v come, or those that take their outputs. An op that passes an input on to an op inside itself counts; the op
 * inside does not. */
static void neighbours_of(struct neighbours *v, const struct op_graph *g, unsigned from, unsigned to, bool producers)
{
	for (unsigned k = from; k < to; k++) {
		const uint32_t row = v->row[k];
		for (uint32_t i = g->first[row]; producers && i < g->first[row + 1]; i++)
			neighbours_add(v, g->edge[i].from);
		for (uint32_t i = g->out_first[row]; !producers && i < g->out_first[row + 1]; i++)
			if (!g->edge[g->out[i]].passed_on)
				neighbours_add(v, g->edge[g->out[i]].to);
	}
}

/* An op may have a hundred thousand inputs: the first of its own are listed, and then so many of those between the others. *n: how many there are, *listed: of these. */
static void neighbours_put_edge(struct about *x, const struct neighbours *v, const struct op_edge *e, unsigned to, uint32_t *n, uint32_t *listed)
{
	const unsigned from = e->from == ROW_NONE ? v->n : neighbours_find(v, e->from);
	if (from == v->n && to) /* only of the op itself are inputs from elsewhere told */
		return;
	++*n;
	if (*listed >= (to ? GRAPH_EDGES : GRAPH_EDGES_OWN))
		return;
	buf_printf(x->b, "%s[%d,%u,%d,%d,", *listed ? "," : "", from == v->n ? -1 : (int)from, to, e->input, e->output);
	json_put_string(x->b, e->shape);
	buf_char(x->b, ']');
	++*listed;
}

/* Ops whose outputs the op takes, and ops that take its outputs, GRAPH_LEVELS of each; nothing where the recording does not state them. */
static void serve_timeline_event_put_graph(struct about *x, uint32_t row)
{
	const struct op_graph *g = x->t->graph;
	if (!g)
		return;
	struct neighbours v = {{row}, 1};
	uint32_t users = 0, edges = 0, listed = 0;
	for (int down = 0; down < 2; down++)
		for (unsigned level = 0, from = 0, to = 1; level < GRAPH_LEVELS; level++) {
			const unsigned before = v.n;
			neighbours_of(&v, g, from, to, !down);
			from = before;
			to = v.n;
		}
	for (uint32_t i = g->out_first[row]; i < g->out_first[row + 1]; i++)
		users += !g->edge[g->out[i]].passed_on;
	if (g->first[row + 1] > g->first[row] || users) {
		buf_cstr(x->b, ",\n\"graph\":{\"nodes\":[");
		for (unsigned i = 0; i < v.n; i++) {
			buf_cstr(x->b, i ? "," : "");
			timeline_put_row(x->b, x->t, false, v.row[i]);
		}
		buf_cstr(x->b, "],\"edges\":[");
		for (unsigned k = 0; k < v.n; k++)
			for (uint32_t i = g->first[v.row[k]]; i < g->first[v.row[k] + 1]; i++)
				neighbours_put_edge(x, &v, &g->edge[i], k, &edges, &listed);
		buf_printf(x->b, "],\"inputs\":%u,\"users\":%u,\"left_out\":%u}", g->first[row + 1] - g->first[row], users, edges - listed);
	}
}

static void serve_timeline_event_put_span(struct about *x, uint32_t row)
{
	serve_timeline_event_put_args(x, x->p->span.args[row]);
	put_around(x, row);
	put_link(x, "op", false, x->p->span.kind[row] == SPAN_CALL ? x->p->span.op[row] : ROW_NONE);
	put_launched(x, row);
	struct fwdbwd *f = fwdbwd_new(x->p);
	put_link(x, "forward", false, fwdbwd_forward(f, row));
	serve_timeline_event_put_backward(x, f, row);
	fwdbwd_free(f);
	serve_timeline_event_put_graph(x, row);
	put_stack(x, row);
}

static void serve_timeline_event_put_gpu(struct about *x, uint32_t row)
{
	serve_timeline_event_put_args(x, x->p->gpu_op.args[row]);
	serve_timeline_event_put_launch(x, row);
	put_link(x, "call", false, x->p->gpu_op.call[row]);
	put_link(x, "op", false, x->p->gpu_op.op[row]);
	put_around(x, x->p->gpu_op.op[row]);
	if (x->p->gpu_op.op[row] != ROW_NONE)
		put_stack(x, x->p->gpu_op.op[row]);
}

/* Its neighbours in the lane. */
static void put_beside(struct about *x, bool device, uint32_t row)
{
	uint32_t lane = device ? x->t->gpu_lane[row] : x->t->span_lane[row], end;
	const struct timeline_lane *l = &x->t->lanes[lane];
	int64_t start = device ? x->p->gpu_op.start_ns[row] : x->p->span.start_ns[row];
	uint32_t i = timeline_slices(x->t, lane, start, start + 1, &end);
	while (i < end && x->t->row[i] != row)
		i++;
	put_link(x, "before", device, i > l->first ? x->t->row[i - 1] : ROW_NONE);
	put_link(x, "after", device, i + 1 < l->first + l->n ? x->t->row[i + 1] : ROW_NONE);
}

int timeline_answer_event(const struct timeline *t, const struct request *r, struct response *out, struct err *e)
{
	bool device = str_eqc(request_value(r, "kind"), "gpu");
	uint32_t n = device ? t->p->gpu_op.rows.n : t->p->span.rows.n;
	int64_t row;
	if (!n)
		return err_set(e, ERR_DATA, "this input has no such events");
	if (request_number(r, "row", 0, (int64_t)n - 1, 0, &row, e) < 0)
		return -1;
	struct about x = {t, t->p, &out->body};
	buf_cstr(x.b, "{\"event\":");
	timeline_put_row(x.b, t, device, (uint32_t)row);
	if (device)
		serve_timeline_event_put_gpu(&x, (uint32_t)row);
	else
		serve_timeline_event_put_span(&x, (uint32_t)row);
	put_beside(&x, device, (uint32_t)row);
	buf_cstr(x.b, "}\n");
	return 0;
}

static int serve_timeline_event_run(const struct request *r, struct response *out, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	return t ? timeline_answer_event(t, r, out, e) : -1;
}

const char *const timeline_event_kinds[] = {"span", "gpu", NULL};
static const struct endpoint_param params[] = {TIMELINE_EVENT_PARAMS, {0}};

const struct endpoint endpoint_timeline_event = {
	.path = "/api/timeline/event",
	.help = "one event with its arguments, stack, what is around it, what launched it and what it launched",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.queue = QUEUE_QUICK,
	.run = serve_timeline_event_run,
};
