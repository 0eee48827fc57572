#include "analysis/tree/fwdbwd.h"
#include "base/mem.h"
#include "detect/parts/compiled.h"
#include "detect/parts/compiled_calls.h"

#include <assert.h>

const char compiled_no_graphs_why[] = "the input does not show which part of a compiled frame is its graph; torch 2.5 and later, or Python frames, show it";
const char compiled_no_frames_why[] = "Python frames were not recorded: several compiled frames in a step may be of one function, or of several";

static bool is_entry(struct str name)
{
	return str_has(name, STR("torch/_dynamo/eval_frame.py(")) && (str_ends(name, STR(": _fn")) || str_ends(name, STR(": compile_wrapper")));
}

static uint8_t part_of_name(struct str name)
{
	if (compiled_is_frame(name))
		return COMPILED_FRAME;
	if (compiled_is_graph(name))
		return COMPILED_GRAPH;
	if (str_eqc(name, "CompiledFunctionBackward"))
		return COMPILED_BACKWARD;
	if (is_entry(name))
		return COMPILED_ENTRY;
	if (str_has(name, STR("): torch_dynamo_resume_in_")) || str_has(name, STR("): <resume in ")))
		return COMPILED_RESUME;
	return str_eqc(name, "TorchDynamo Cache Lookup") || str_eqc(name, "Pregraph bytecode") ? COMPILED_OWN : COMPILED_OTHER;
}

static uint32_t compiled_calls_add_call(struct compiled_calls *x, uint32_t span)
{
	MEM_PUSH(x->v, x->n, x->cap, (struct compiled_call){.span = span, .graph_ns = INT64_MAX, .back_from_ns = INT64_MAX, .back_to_ns = INT64_MIN});
	return x->n - 1;
}

/* Whether this continuation is what its compiled frame runs: then that is counted. */
static bool is_body(const struct compiled_calls *x, uint32_t resume)
{
	const struct profile *p = x->p;
	uint32_t up = p->span.parent[resume];
	while (up != ROW_NONE && compiled_part_of(x, up) == COMPILED_GRAPH && p->span.start_ns[up] == p->span.start_ns[resume]) /* rounded times */
		up = p->span.parent[up];
	return up != ROW_NONE && compiled_part_of(x, up) == COMPILED_FRAME && x->is_break[up];
}

/* Of calls of compiled functions inside each other, each is its own. Before torch 2.1, which has no ranges of frames, the entry's frame has the name of
 * another one around each graph. */
static bool begins_call(const struct compiled_calls *x, uint32_t entry)
{
	uint32_t up = x->p->span.parent[entry];
	return up == ROW_NONE || (x->frame[up] == ROW_NONE && !x->in_graph[up] && (x->has_frames || x->call[up] == ROW_NONE));
}

/* Parents stand before what is inside them. */
static void compiled_calls_find_calls(struct compiled_calls *x)
{
	const struct profile *p = x->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		uint8_t part = compiled_part_of(x, i);
		x->call[i] = up != ROW_NONE ? x->call[up] : ROW_NONE;
		x->frame[i] = part == COMPILED_FRAME ? i : up != ROW_NONE ? x->frame[up] : ROW_NONE;
		x->in_graph[i] = part == COMPILED_GRAPH || part == COMPILED_BACKWARD || (up != ROW_NONE && x->in_graph[up]);
		x->entries |= part == COMPILED_ENTRY;
		if (part == COMPILED_ENTRY ? begins_call(x, i) : part == COMPILED_FRAME && x->call[i] == ROW_NONE)
			x->call[i] = compiled_calls_add_call(x, i);
		if (x->call[i] == ROW_NONE)
			continue;
		struct compiled_call *c = &x->v[x->call[i]];
		x->is_break[i] = (part == COMPILED_FRAME && c->frames) || (part == COMPILED_RESUME && !is_body(x, i));
		c->frames += part == COMPILED_FRAME;
		c->breaks += x->is_break[i];
		if (part == COMPILED_GRAPH)
			c->graph_ns = p->span.start_ns[i] < c->graph_ns ? p->span.start_ns[i] : c->graph_ns;
	}
}

static bool is_broken(const struct compiled_calls *x, const struct compiled_call *c)
{
	return c->breaks && step_time_has(x->w, x->p->span.start_ns[c->span]);
}

const struct compiled_call *compiled_broken_call(const struct compiled_calls *x, uint32_t span)
{
	const struct compiled_call *c = span != ROW_NONE && x->call[span] != ROW_NONE ? &x->v[x->call[span]] : NULL;
	return c && c->graph_ns != INT64_MAX && is_broken(x, c) ? c : NULL;
}

bool compiled_is_eager(const struct compiled_calls *x, uint32_t span)
{
	assert(span != ROW_NONE);
	const struct compiled_call *c = compiled_broken_call(x, span);
	int64_t at = x->p->span.start_ns[span];
	if (x->in_graph[span])
		return false;
	return c ? at >= c->graph_ns : x->backward[x->p->span.track[span]] && intervals_length_within(&x->back, at, at + 1);
}

bool compiled_may_be_broken(const struct compiled_calls *x)
{
	uint64_t n = 0;
	for (uint32_t k = 0; k < x->n; k++)
		n += x->v[k].frames && step_time_has(x->w, x->p->span.start_ns[x->v[k].span]);
	return !x->broken && !x->entries && n > x->w->n;
}

uint32_t compiled_put_break(const struct compiled_calls *x, uint32_t at, struct buf *out)
{
	const struct profile *p = x->p;
	uint32_t body = at;
	for (uint32_t i = at + 1; i < p->span.rows.n && i <= at + 2 && body == at; i++) /* the frame stands first in its range, where times are not rounded */
		body = compiled_part_of(x, i) == COMPILED_RESUME && x->frame[i] == at ? i : at;
	struct str name = profile_str(p, p->span.name[body]);
	ptrdiff_t resume = str_find(name, STR("torch_dynamo_resume_in_")), paren = str_find(name, STR("("));
	size_t line = name.n;
	if (resume < 0 || paren < 0) {
		buf_str(out, name);
		return compiled_part_of(x, body) == COMPILED_RESUME ? ROW_NONE : at;
	}
	while (line > (size_t)resume && name.p[line - 1] != '_')
		line--;
	size_t from = (size_t)resume + strlen("torch_dynamo_resume_in_"), to = line >= from + strlen("_at_") ? line - strlen("_at_") : name.n;
	buf_put(out, name.p + from, to - from);
	buf_cstr(out, " at ");
	buf_put(out, name.p, (size_t)paren + 1);
	buf_put(out, name.p + line, name.n - line);
	buf_char(out, ')');
	return ROW_NONE;
}

/* *out: the ranges without graphs. */
static void add_between(struct intervals *ranges, struct intervals *graphs, struct intervals *out)
{
	intervals_normalise(ranges);
	intervals_normalise(graphs);
	intervals_subtract(ranges, graphs, out);
	intervals_release(ranges);
	intervals_release(graphs);
}

static void find_between(struct compiled_calls *x)
{
	struct intervals calls = {0}, graphs = {0};
	for (uint32_t k = 0; k < x->n; k++) {
		const struct compiled_call *c = &x->v[k];
		if (!is_broken(x, c))
			continue;
		bool shown = c->graph_ns != INT64_MAX;
		x->broken += shown;
		intervals_add(shown ? &calls : &x->unknown, shown ? c->graph_ns : x->p->span.start_ns[c->span], span_end(x->p, c->span));
	}
	for (uint32_t i = 0; i < x->p->span.rows.n && calls.n; i++)
		if (compiled_part_of(x, i) == COMPILED_GRAPH && compiled_broken_call(x, i))
			intervals_add(&graphs, x->p->span.start_ns[i], span_end(x->p, i));
	add_between(&calls, &graphs, &x->between);
	intervals_normalise(&x->unknown);
}

/* The graphs of the backward pass run in the order of the forward's, back to front: between the first and the last of a call what was eager there is
 * eager, too. */
static void find_back(struct compiled_calls *x)
{
	const struct profile *p = x->p;
	struct intervals ranges = {0}, graphs = {0};
	struct fwdbwd *links = x->broken ? fwdbwd_new(p) : NULL;
	for (uint32_t i = 0; i < p->span.rows.n && links; i++) {
		uint32_t forward = compiled_part_of(x, i) == COMPILED_BACKWARD ? fwdbwd_forward(links, i) : ROW_NONE;
		if (!compiled_broken_call(x, forward))
			continue;
		struct compiled_call *c = &x->v[x->call[forward]];
		c->back_from_ns = p->span.start_ns[i] < c->back_from_ns ? p->span.start_ns[i] : c->back_from_ns;
		c->back_to_ns = span_end(p, i) > c->back_to_ns ? span_end(p, i) : c->back_to_ns;
		x->backward[p->span.track[i]] = 1;
		intervals_add(&graphs, p->span.start_ns[i], span_end(p, i));
	}
	for (uint32_t k = 0; k < x->n && links; k++)
		if (x->v[k].back_from_ns < x->v[k].back_to_ns)
			intervals_add(&ranges, x->v[k].back_from_ns, x->v[k].back_to_ns);
	add_between(&ranges, &graphs, &x->back);
	if (links)
		fwdbwd_free(links);
}

struct compiled_calls *compiled_calls_new(const struct profile *p, const struct step_time *w)
{
	bool any = false;
	uint32_t n = p->span.rows.n;
	struct compiled_calls *x = NEW(struct compiled_calls);
	*x = (struct compiled_calls){.p = p, .w = w, .part = NEW_ARRAY(p->strings.n, uint8_t)};
	for (uint32_t i = 0; i < p->strings.n; i++) {
		x->part[i] = part_of_name(profile_str(p, i));
		x->has_frames |= x->part[i] == COMPILED_FRAME;
		any |= x->part[i] == COMPILED_FRAME || x->part[i] == COMPILED_RESUME;
	}
	if (!any) {
		compiled_calls_free(x);
		return NULL;
	}
	x->call = NEW_ARRAY(n, uint32_t);
	x->frame = NEW_ARRAY(n, uint32_t);
	x->in_graph = NEW_ARRAY(n, uint8_t);
	x->is_break = NEW_ARRAY(n, uint8_t);
	x->backward = NEW_ARRAY(p->track.rows.n, uint8_t);
	compiled_calls_find_calls(x);
	find_between(x);
	find_back(x);
	return x;
}

void compiled_calls_free(struct compiled_calls *x)
{
	if (!x)
		return;
	intervals_release(&x->between);
	intervals_release(&x->back);
	intervals_release(&x->unknown);
	mem_free(x->backward);
	mem_free(x->is_break);
	mem_free(x->in_graph);
	mem_free(x->frame);
	mem_free(x->call);
	mem_free(x->v);
	mem_free(x->part);
	mem_free(x);
}
