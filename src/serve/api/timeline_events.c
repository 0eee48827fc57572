/* All events of a short trace at once, column by column: what an exported report draws its timeline from, and what is known of each event. */
#include "analysis/names/stacks.h"
#include "analysis/tree/fwdbwd.h"
#include "analysis/tree/op_graph.h"
#include "serve/api/timeline_roles.h"
#include "serve/api/timeline_times.h"
#include "serve/series.h"

enum { EVENTS_MAX = 400000 };

struct all {
	const struct timeline *t;
	const struct profile *p;
	struct buf *b;
	struct texts texts;
};

/* A column of all rows; `before` is written in front of it. */
#define PUT(before, name, differences, n, value)                                                                                            \
	do {                                                                                                                        \
		buf_cstr(x->b, before);                                                                                             \
		struct series s_ = series_begin(x->b, name, differences);                                                           \
		for (uint32_t i = 0; i < (n); i++)                                                                                  \
			series_add(&s_, value);                                                                                     \
		series_end(&s_);                                                                                                    \
	} while (0)

/* A row as a number; none is -1. */
static int64_t row_or_none(uint32_t row)
{
	return row == ROW_NONE ? -1 : (int64_t)row;
}

/* Each lane's rows, in order of start. */
static void put_lanes(struct all *x)
{
	buf_cstr(x->b, "{\"lanes\":[");
	for (uint32_t l = 0; l < x->t->n_lanes; l++) {
		buf_printf(x->b, "%s{\"track\":%u,", l ? ",\n" : "\n", x->t->lanes[l].track);
		PUT("", "rows", true, x->t->lanes[l].n, x->t->row[x->t->lanes[l].first + i]);
		buf_char(x->b, '}');
	}
	buf_cstr(x->b, "],\n");
}

static void put_spans(struct all *x, const struct stacks *stacks)
{
	const struct spans *v = &x->p->span;
	uint32_t n = v->rows.n;
	PUT("\"span\":{", "start", true, n, v->start_ns[i] - x->t->first_ns);
	PUT(",", "dur", false, n, v->dur_ns[i]);
	PUT(",", "name", false, n, texts_number(&x->texts, v->name[i]));
	PUT(",", "category", false, n, v->cat[i]);
	PUT(",", "kind", false, n, v->kind[i]);
	PUT(",\n", "args", true, n, v->args[i]);
	PUT(",", "parent", true, n, row_or_none(v->parent[i]));
	PUT(",", "op", true, n, row_or_none(v->kind[i] == SPAN_CALL ? v->op[i] : ROW_NONE));
	PUT(",", "stack", true, n, stacks_of(stacks, i));
	buf_cstr(x->b, "},\n");
}

static void put_gpu_ops(struct all *x)
{
	const struct gpu_ops *v = &x->p->gpu_op;
	uint32_t n = v->rows.n;
	PUT("\"gpu\":{", "start", true, n, v->start_ns[i] - x->t->first_ns);
	PUT(",", "dur", false, n, v->dur_ns[i]);
	PUT(",", "name", false, n, texts_number(&x->texts, v->name[i]));
	PUT(",", "category", false, n, v->cat[i]);
	PUT(",", "kind", false, n, v->kind[i]);
	PUT(",\n", "args", true, n, v->args[i]);
	PUT(",", "call", true, n, row_or_none(v->call[i]));
	PUT(",", "op", true, n, row_or_none(v->op[i]));
	PUT(",", "launch", false, n, row_or_none(v->launch[i]));
	buf_cstr(x->b, "},\n");
}

/* Pairs of texts, and where those of each set begin. */
static void serve_timeline_events_put_args(struct all *x)
{
	const struct args *a = &x->p->arg;
	PUT("", "arg_first", true, x->p->arg_set.rows.n, x->p->arg_set.first[i]);
	PUT(",", "arg_name", false, a->rows.n, texts_number(&x->texts, a->key[i]));
	PUT(",", "arg_value", false, a->rows.n, texts_number(&x->texts, a->value[i]));
	buf_cstr(x->b, ",\n");
}

static void put_launches(struct all *x)
{
	buf_cstr(x->b, "\"launches\":[");
	for (uint32_t i = 0; i < x->p->launch.rows.n; i++) {
		buf_cstr(x->b, i ? ",\n" : "\n");
		timeline_put_launch(x->b, x->p, i);
	}
	buf_cstr(x->b, "],\n");
}

/* A stack is its innermost frame and the stack that this was called from, which stands before it. Stack 0 is empty. */
static void put_stacks(struct all *x, const struct stacks *stacks)
{
	uint32_t n = stacks_count(stacks);
	struct series up = series_begin(x->b, "stack_up", true);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t stack = i;
		struct str frame;
		stacks_pop(stacks, &stack, &frame);
		series_add(&up, stack);
	}
	series_end(&up);
	buf_cstr(x->b, ",\"stack_frame\":[");
	for (uint32_t i = 1; i < n; i++) {
		uint32_t stack = i;
		struct str frame = {0};
		stacks_pop(stacks, &stack, &frame);
		buf_cstr(x->b, i > 1 ? "," : "");
		json_put_string(x->b, frame);
	}
	buf_cstr(x->b, "],\n");
}

static void serve_timeline_events_put_backward(struct all *x)
{
	struct fwdbwd *f = fwdbwd_new(x->p);
	uint32_t n = x->p->span.rows.n;
	struct series rows = series_begin(x->b, "backward", true);
	for (uint32_t i = 0; i < n; i++)
		if (rankset_has(&f->linked, i))
			series_add(&rows, i);
	series_end(&rows);
	buf_char(x->b, ',');
	struct series of = series_begin(x->b, "forward", true);
	for (uint32_t i = 0; i < n; i++)
		if (rankset_has(&f->linked, i))
			series_add(&of, row_or_none(fwdbwd_forward(f, i)));
	series_end(&of);
	buf_cstr(x->b, ",\n");
	fwdbwd_free(f);
}

/* Edges of the op graph, in the order of the ops that have the inputs; nothing where the recording does not state it. */
static void put_graph(struct all *x)
{
	const struct op_graph *g = x->t->graph;
	if (!g)
		return;
	PUT("\"graph\":{", "to", true, g->n, g->edge[i].to);
	PUT(",", "from", true, g->n, row_or_none(g->edge[i].from));
	PUT(",", "input", false, g->n, g->edge[i].input);
	PUT(",", "output", false, g->n, g->edge[i].output);
	PUT(",", "passed_on", false, g->n, g->edge[i].passed_on);
	buf_cstr(x->b, ",\"shape\":[");
	for (uint32_t i = 0; i < g->n; i++) {
		buf_cstr(x->b, i ? "," : "");
		json_put_string(x->b, g->edge[i].shape);
	}
	buf_cstr(x->b, "]},\n");
}

static void serve_timeline_events_put_categories(struct all *x)
{
	buf_cstr(x->b, "\"categories\":[");
	for (uint32_t i = 0; i < x->p->cat.rows.n; i++) {
		buf_cstr(x->b, i ? "," : "");
		json_put_string(x->b, profile_cat(x->p, (uint16_t)i));
	}
	buf_cstr(x->b, "],\n");
}

static void serve_timeline_events_put_roles(struct all *x)
{
	struct timeline_names names;
	timeline_names_begin(&names, x->p);
	for (uint32_t i = 0; i < x->p->span.rows.n; i++)
		timeline_names_meet(&names, false, i);
	for (uint32_t i = 0; i < x->p->gpu_op.rows.n; i++)
		timeline_names_meet(&names, true, i);
	timeline_names_put_roles(&names, &x->texts, x->b);
	buf_cstr(x->b, ",\n");
	timeline_names_release(&names);
}

static int serve_timeline_events_run(const struct request *r, struct response *out, struct err *e)
{
	struct all a = {.t = library_timeline(r->library, r->entry, e), .b = &out->body}, *x = &a;
	if (!x->t)
		return -1;
	x->p = x->t->p;
	uint64_t n = (uint64_t)x->p->span.rows.n + x->p->gpu_op.rows.n;
	if (n > EVENTS_MAX)
		return err_set(e, ERR_LIMIT, "%llu events: at most %d are given at once", (unsigned long long)n, EVENTS_MAX);
	struct stacks *stacks = stacks_new(x->p);
	texts_begin(&x->texts, x->p);
	put_lanes(x);
	put_spans(x, stacks);
	put_gpu_ops(x);
	serve_timeline_events_put_args(x);
	put_launches(x);
	put_stacks(x, stacks);
	serve_timeline_events_put_backward(x);
	put_graph(x);
	serve_timeline_events_put_categories(x);
	serve_timeline_events_put_roles(x);
	series_words(x->b, "span_kinds", span_kind_name, SPAN_KINDS);
	buf_char(x->b, ',');
	series_words(x->b, "gpu_kinds", gpu_kind_name, GPU_KINDS);
	buf_cstr(x->b, ",\n");
	texts_put(&x->texts, x->b, "texts");
	buf_cstr(x->b, "}\n");
	texts_release(&x->texts);
	stacks_free(stacks);
	return 0;
}

const struct endpoint endpoint_timeline_events = {
	.path = "/api/timeline/events",
	.help = "all events of a short trace at once, column by column, most columns as differences: what an exported report draws its timeline from",
	.flags = ENDPOINT_INPUT,
	.run = serve_timeline_events_run,
};
