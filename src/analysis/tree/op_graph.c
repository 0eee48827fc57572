#include "analysis/tree/op_graph.h"

#include "analysis/analysis.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "io/pyliteral.h"

#include <stdlib.h>

/* Of a tensor: the op that ended last with it among its outputs. */
struct op_graph_tensor {
	uint32_t op;
	int32_t output;
	int64_t storage;
};

struct op_graph_work {
	const struct profile *p;
	struct op_graph *g;
	struct intern ids;              /* process and id of an op, or process and id of a tensor; its numbers index op and tensor */
	uint32_t *op;                   /* the op with this id; ROW_NONE = several */
	uint32_t cap_ops;
	struct op_graph_tensor *tensor; /* what is known of the tensor */
	uint32_t cap_tensors;
	struct str *shape;              /* of the inputs of one op */
	uint32_t n_shapes, cap_shapes;
};

enum op_graph_source op_graph_source(const struct profile *p)
{
	profile_assert_kept(p, LEFT_OP_IDS);
	if (p->span.input_ops)
		return OP_GRAPH_RANGES;
	if (profile_has_arg(p, ARG_INPUT_CALLS))
		return OP_GRAPH_CALLS;
	return profile_has_arg(p, ARG_INPUT_TENSORS) ? OP_GRAPH_TENSORS : OP_GRAPH_NONE;
}

bool op_graph_id(const struct profile *p, enum op_graph_source source, uint32_t span, int64_t *id)
{
	struct str text;
	*id = 0;
	switch (source) {
	case OP_GRAPH_RANGES: *id = span_op_id(&p->span, span); return *id > 0;
	case OP_GRAPH_CALLS: return profile_arg(p, p->span.args[span], ARG_CALL_ID, &text) && str_to_i64(text, id) && *id >= 0;
	case OP_GRAPH_TENSORS: *id = span_ext_id(&p->span, span); return *id != ID_NONE;
	case OP_GRAPH_NONE: break;
	}
	return false;
}

static const struct py *op_graph_list(struct str text, struct arena *a)
{
	size_t at;
	const struct py *v = text.n ? py_parse(text, a, &at) : NULL;
	return v && v->type == PY_LIST ? v : NULL;
}

static const struct py *op_graph_arg(const struct profile *p, uint32_t span, enum arg_key key, struct arena *a)
{
	struct str text;
	return profile_arg(p, p->span.args[span], key, &text) ? op_graph_list(text, a) : NULL;
}

/* A list of tensors, rather than a tensor or something else. */
static bool op_graph_is_list(const struct py *v)
{
	return v->type == PY_LIST && v->first && v->first->type == PY_LIST;
}

/* ---- shapes ---- */

static void op_graph_read_shapes(struct op_graph_work *w, uint32_t span, struct arena *a)
{
	const struct py *dims = op_graph_arg(w->p, span, ARG_INPUT_DIMS, a);
	w->n_shapes = 0;
	for (const struct py *v = dims ? dims->first : NULL; v; v = v->next) {
		const bool list = op_graph_is_list(v);
		for (const struct py *x = list ? v->first : v; x; x = list ? x->next : NULL)
			MEM_PUSH(w->shape, w->n_shapes, w->cap_shapes, x->raw);
	}
}

/* Shape of input i of n; "" where shapes and inputs are not the same in number. */
static struct str op_graph_shape(const struct op_graph_work *w, uint32_t i, uint32_t n)
{
	return w->n_shapes == n ? w->shape[i] : (struct str){"", 0};
}

static bool op_graph_has_dims(struct str shape)
{
	return shape.n > 2;
}

/* ---- ids ---- */

/* The number of an id in the process of a span; a new id gets the next one. */
static uint32_t op_graph_number(struct op_graph_work *w, uint32_t span, int64_t id)
{
	const int64_t key[2] = {w->p->track.pid_text[w->p->span.track[span]], id};
	return intern_put(&w->ids, (const char *)key, sizeof key) - 1;
}

/* The same of an id that has a number; ROW_NONE = it has none. */
static uint32_t op_graph_find(const struct op_graph_work *w, uint32_t span, int64_t id)
{
	const int64_t key[2] = {w->p->track.pid_text[w->p->span.track[span]], id};
	const uint32_t k = intern_find(&w->ids, (struct str){(const char *)key, sizeof key});
	return k == INTERN_NONE ? ROW_NONE : k - 1;
}

static bool op_graph_may_be(const struct profile *p, uint32_t span)
{
	return (p->span.kind[span] == SPAN_OP || p->span.kind[span] == SPAN_USER) && !span_is_replay(p, span);
}

static void op_graph_read_ids(struct op_graph_work *w)
{
	int64_t id;
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		if (!op_graph_may_be(w->p, i) || !op_graph_id(w->p, w->g->source, i, &id))
			continue;
		const uint32_t known = w->ids.n, k = op_graph_number(w, i, id);
		MEM_GROW(w->op, w->cap_ops, k + 1);
		w->op[k] = w->ids.n > known ? i : ROW_NONE;
	}
}

/* Adds an edge whose from_id is stated. */
static void op_graph_add(struct op_graph_work *w, struct op_edge e)
{
	const struct profile *p = w->p;
	const uint32_t k = op_graph_find(w, e.to, e.from_id);
	e.from = k == ROW_NONE ? ROW_NONE : w->op[k];
	/* An op that takes no time ends as it begins, and has not made its own input. */
	const bool late = e.from != ROW_NONE && (e.from == e.to || span_end(p, e.from) > p->span.start_ns[e.to]);
	w->g->not_believed += late || (k != ROW_NONE && e.from == ROW_NONE);
	e.from = late ? ROW_NONE : e.from;
	w->g->outside += e.from == ROW_NONE;
	MEM_PUSH(w->g->edge, w->g->n, w->g->cap, e);
}

/* [(7, 0), (0, -1)]: op 7 made the first input, and no op is known to have made the second. */
static void op_graph_of_range(struct op_graph_work *w, uint32_t span, struct arena *a)
{
	const struct py *list = op_graph_list(profile_str(w->p, span_input_ops(&w->p->span, span)), a);
	uint32_t i = 0;
	if (!list)
		return;
	w->g->ops++;
	op_graph_read_shapes(w, span, a);
	for (const struct py *x = list->first; x; x = x->next, i++) {
		const struct py *id = x->type == PY_TUPLE && x->n == 2 ? x->first : NULL;
		const struct str shape = op_graph_shape(w, i, list->n);
		if (!id || id->type != PY_INT || id->next->type != PY_INT)
			continue;
		const bool stated = id->i > 0 && id->next->i >= 0 && id->next->i <= INT32_MAX;
		if (stated)
			op_graph_add(w, (struct op_edge){.to = span, .from_id = id->i, .input = (int32_t)i, .output = (int32_t)id->next->i, .shape = shape});
		else
			w->g->unknown += op_graph_has_dims(shape);
	}
}

/* [7, -1]: call 7 made the first tensor among the inputs, and no call is known to have made the second. */
static void op_graph_of_call(struct op_graph_work *w, uint32_t span, struct arena *a)
{
	const struct py *list = op_graph_arg(w->p, span, ARG_INPUT_CALLS, a);
	int32_t i = 0;
	if (!list)
		return;
	w->g->ops++;
	for (const struct py *x = list->first; x; x = x->next, i++) {
		if (x->type == PY_INT && x->i >= 0)
			op_graph_add(w, (struct op_edge){.to = span, .from_id = x->i, .input = i, .output = -1});
		else
			w->g->unknown++;
	}
}

static void op_graph_by_ids(struct op_graph_work *w)
{
	op_graph_read_ids(w);
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		struct arena a = {0};
		if (!op_graph_may_be(w->p, i))
			continue;
		if (w->g->source == OP_GRAPH_RANGES)
			op_graph_of_range(w, i, &a);
		else
			op_graph_of_call(w, i, &a);
		arena_release(&a);
	}
}

/* ---- tensors ---- */

struct op_graph_events {
	struct sort_item *v; /* tie: 0 = the op begins, 1 = it ends */
	uint32_t n;
	int64_t last_ns;
};

static void op_graph_push_event(struct op_graph_events *e, int64_t time_ns, uint32_t op, bool ends)
{
	e->last_ns = time_ns > e->last_ns ? time_ns : e->last_ns;
	e->v[e->n++] = (struct sort_item){sort_key_i64(e->last_ns), op, ends};
}

/* Begins and ends of ops, in order of time. Of a thread's events at one moment, an op ends before the next one begins, and ops inside an op end before it does. */
static struct op_graph_events op_graph_events(const struct profile *p)
{
	const uint32_t n = p->span.rows.n;
	struct op_graph_events e = {.v = NEW_ARRAY_RAW(2 * (size_t)n, struct sort_item)};
	uint32_t *open = NEW_ARRAY_RAW(n, uint32_t), depth = 0, track = ROW_NONE;
	for (uint32_t i = 0; i <= n; i++) {
		const bool other = i == n || p->span.track[i] != track;
		if (!other && (p->span.kind[i] != SPAN_OP || span_is_replay(p, i)))
			continue;
		while (depth && (other || open[depth - 1] != p->span.op[i])) {
			depth--;
			op_graph_push_event(&e, span_end(p, open[depth]), open[depth], true);
		}
		if (i == n)
			break;
		e.last_ns = other ? INT64_MIN : e.last_ns;
		track = p->span.track[i];
		if (p->span.kind[i] != SPAN_OP || span_is_replay(p, i))
			continue;
		op_graph_push_event(&e, p->span.start_ns[i], i, false);
		open[depth++] = i;
	}
	mem_free(open);
	sort_items(e.v, e.n);
	return e;
}

/* The tensor [id, storage], or NULL. */
static const struct py *op_graph_tensor_id(const struct py *v)
{
	const struct py *id = v->type == PY_LIST && v->n == 2 ? v->first : NULL;
	return id && id->type == PY_INT && id->next->type == PY_INT ? id : NULL;
}

static void op_graph_see_input(struct op_graph_work *w, uint32_t span, const struct py *v, uint32_t input, uint32_t inputs)
{
	const struct py *id = op_graph_tensor_id(v);
	const struct str shape = op_graph_shape(w, input, inputs);
	if (!id)
		return;
	const uint32_t k = op_graph_find(w, span, id->i);
	if (k == ROW_NONE || w->tensor[k].storage != id->next->i) {
		w->g->unknown++;
		return;
	}
	struct op_edge e = {.to = span, .from = w->tensor[k].op, .input = (int32_t)input, .output = w->tensor[k].output, .shape = shape};
	op_graph_id(w->p, OP_GRAPH_TENSORS, e.from, &e.from_id);
	MEM_PUSH(w->g->edge, w->g->n, w->g->cap, e);
}

static void op_graph_see_output(struct op_graph_work *w, uint32_t span, const struct py *v, uint32_t output)
{
	const struct py *id = op_graph_tensor_id(v);
	if (!id)
		return;
	const uint32_t k = op_graph_number(w, span, id->i);
	MEM_GROW(w->tensor, w->cap_tensors, k + 1);
	w->tensor[k] = (struct op_graph_tensor){span, (int32_t)output, id->next->i};
}

static uint32_t op_graph_count(const struct py *list)
{
	uint32_t n = 0;
	for (const struct py *v = list->first; v; v = v->next)
		n += op_graph_is_list(v) ? v->n : 1;
	return n;
}

static void op_graph_see(struct op_graph_work *w, uint32_t span, bool outputs)
{
	struct arena a = {0};
	const struct py *list = op_graph_arg(w->p, span, outputs ? ARG_OUTPUT_TENSORS : ARG_INPUT_TENSORS, &a);
	const uint32_t n = list ? op_graph_count(list) : 0;
	uint32_t i = 0;
	if (list && !outputs) {
		w->g->ops++;
		op_graph_read_shapes(w, span, &a);
	}
	for (const struct py *v = list ? list->first : NULL; v; v = v->next) {
		const bool is_list = op_graph_is_list(v);
		for (const struct py *x = is_list ? v->first : v; x; x = is_list ? x->next : NULL, i++) {
			if (outputs)
				op_graph_see_output(w, span, x, i);
			else
				op_graph_see_input(w, span, x, i, n);
		}
	}
	arena_release(&a);
}

static void op_graph_by_tensors(struct op_graph_work *w)
{
	struct op_graph_events e = op_graph_events(w->p);
	for (uint32_t i = 0; i < e.n; i++)
		op_graph_see(w, e.v[i].row, e.v[i].tie);
	mem_free(e.v);
}

/* ---- the graph ---- */

static int op_graph_by_to(const void *a, const void *b)
{
	const struct op_edge *x = a, *y = b;
	return COMPARE(x->to, y->to) ?: COMPARE(x->input, y->input);
}

static void op_graph_index(struct op_graph *g, uint32_t spans)
{
	g->spans = spans;
	g->first = NEW_ARRAY((size_t)spans + 1, uint32_t);
	g->out_first = NEW_ARRAY((size_t)spans + 1, uint32_t);
	g->out = NEW_ARRAY_RAW(g->n, uint32_t);
	for (uint32_t i = 0; i < g->n; i++) {
		g->first[g->edge[i].to + 1]++;
		if (g->edge[i].from != ROW_NONE)
			g->out_first[g->edge[i].from + 1]++;
	}
	for (uint32_t i = 0; i < spans; i++) {
		g->first[i + 1] += g->first[i];
		g->out_first[i + 1] += g->out_first[i];
	}
	uint32_t *at = NEW_ARRAY_RAW(spans, uint32_t);
	memcpy(at, g->out_first, spans * sizeof *at);
	for (uint32_t i = 0; i < g->n; i++)
		if (g->edge[i].from != ROW_NONE)
			g->out[at[g->edge[i].from]++] = i;
	mem_free(at);
}

/* One output has one shape: an op that changes a tensor's shape in place is its next producer. The first op that took an output says the shape; an input of another shape
 * is another tensor, at the address of one that is gone. Tensors that torch makes of numbers are often such. */
static void op_graph_doubt_shapes(const struct profile *p, struct op_graph *g)
{
	struct intern outputs;
	uint32_t *first = NEW_ARRAY_RAW(g->n, uint32_t); /* by output: the earliest edge with a shape */
	uint32_t *output = NEW_ARRAY_RAW(g->n, uint32_t);
	intern_init(&outputs);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct op_edge *e = &g->edge[i];
		if (e->from == ROW_NONE || !e->shape.n)
			continue;
		const int64_t key[2] = {e->from, e->output};
		const uint32_t known = outputs.n, k = intern_put(&outputs, (const char *)key, sizeof key) - 1;
		if (outputs.n > known || p->span.start_ns[e->to] < p->span.start_ns[g->edge[first[k]].to])
			first[k] = i;
		output[i] = k;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		struct op_edge *e = &g->edge[i];
		if (e->from == ROW_NONE || !e->shape.n || str_eq(e->shape, g->edge[first[output[i]]].shape))
			continue;
		e->from = ROW_NONE;
		g->outside++;
		g->not_believed++;
	}
	intern_release(&outputs);
	mem_free(first);
	mem_free(output);
}

static void op_graph_find_passed_on(const struct profile *p, struct op_graph *g)
{
	struct intern inputs;
	intern_init(&inputs);
	for (uint32_t i = 0; i < g->n; i++) {
		const int64_t key[3] = {g->edge[i].to, g->edge[i].from_id, g->edge[i].output};
		intern_put(&inputs, (const char *)key, sizeof key);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const int64_t key[3] = {p->span.op[g->edge[i].to], g->edge[i].from_id, g->edge[i].output};
		g->edge[i].passed_on = intern_find(&inputs, (struct str){(const char *)key, sizeof key}) != INTERN_NONE;
	}
	intern_release(&inputs);
}

struct op_graph *op_graph_new(const struct profile *p)
{
	struct op_graph *g = NEW(struct op_graph);
	struct op_graph_work w = {.p = p, .g = g};
	g->source = op_graph_source(p);
	intern_init(&w.ids);
	if (g->source == OP_GRAPH_TENSORS)
		op_graph_by_tensors(&w);
	else if (g->source != OP_GRAPH_NONE)
		op_graph_by_ids(&w);
	if (g->n)
		qsort(g->edge, g->n, sizeof *g->edge, op_graph_by_to);
	op_graph_find_passed_on(p, g);
	if (g->source == OP_GRAPH_RANGES)
		op_graph_doubt_shapes(p, g);
	op_graph_index(g, p->span.rows.n);
	intern_release(&w.ids);
	mem_free(w.op);
	mem_free(w.tensor);
	mem_free(w.shape);
	return g;
}

void op_graph_free(struct op_graph *g)
{
	if (!g)
		return;
	mem_free(g->edge);
	mem_free(g->first);
	mem_free(g->out);
	mem_free(g->out_first);
	mem_free(g);
}

size_t op_graph_bytes(const struct op_graph *g)
{
	return sizeof *g + g->cap * sizeof *g->edge + g->n * sizeof *g->out + 2 * ((size_t)g->spans + 1) * sizeof *g->first;
}
