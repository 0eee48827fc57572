#include "analysis/graph/graph_captures.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/steps/serving.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

enum graph_call { CALL_OTHER, CALL_BEGIN, CALL_END, CALL_FORK, CALL_CHILD, CALL_KERNEL, CALL_COPY, CALL_SET };

/* One capture, from its begin on. */
struct graph_open {
	uint32_t begin, end;     /* rows of span; end ROW_NONE = not recorded */
	uint32_t outer;          /* the capture of the same thread around it, of `open`; ROW_NONE = none */
	uint64_t from, to;       /* sort_key_i64 of the times of its begin and end */
	bool loose;              /* as in struct graph_capture */
	bool overlaps;           /* overlaps a capture of another thread of the process */
	uint32_t waits;          /* how often a stream has waited for another so far */
	struct sort_item *own, *foreign; /* calls of its thread, and of threads that captured nothing; key: time, row: of span, tie: `waits` before an own call */
	uint32_t n_own, cap_own, n_foreign, cap_foreign;
};

struct graph_captures_work {
	const struct profile *p;
	uint8_t *call_kind;      /* of a name, enum graph_call + 1; 0 = not looked at */
	uint8_t *ran;            /* by span: 1 = the device work of this call was recorded */
	uint32_t last;           /* the last row for which graph_outer_call_of gave a kind; ROW_NONE */
	struct graph_open *open; /* by row of begin */
	uint32_t n_open, cap_open;
	struct sort_item *outside; /* calls outside of the captures of their thread */
	uint32_t n_outside, cap_outside;
};

static enum graph_call graph_call_of_name(struct str name)
{
	if (str_has(name, STR("StreamBeginCapture")))
		return CALL_BEGIN;
	if (str_has(name, STR("StreamEndCapture")))
		return CALL_END;
	if (str_has(name, STR("StreamWaitEvent")))
		return CALL_FORK;
	/* A graph that is launched into a capture becomes one node, which runs all that it holds. */
	if (graph_is_launch(name))
		return CALL_CHILD;
	/* Calls that build graphs node by node, outside of captures: cudaGraphAddMemcpyNode. */
	if (str_has(name, STR("Graph")))
		return CALL_OTHER;
	if (str_has(name, STR("Launch")) && !str_has(name, STR("HostFunc")))
		return CALL_KERNEL;
	if (str_has(name, STR("Memcpy")))
		return CALL_COPY;
	return str_has(name, STR("Memset")) ? CALL_SET : CALL_OTHER;
}

static enum graph_call graph_call_of(const struct graph_captures_work *w, uint32_t span)
{
	if (w->p->span.kind[span] != SPAN_CALL)
		return CALL_OTHER;
	uint8_t *known = &w->call_kind[w->p->span.name[span]];
	if (!*known)
		*known = (uint8_t)(1 + graph_call_of_name(profile_str(w->p, w->p->span.name[span])));
	return (enum graph_call)(*known - 1);
}

bool graph_is_module(const struct profile *p, uint32_t i)
{
	return name_is(p, p->span.name[i], NAME_MODULE | NAME_MODULE_ANNOTATED | NAME_MODULE_LIGHTNING);
}

uint64_t graph_op_key(const struct profile *p, uint32_t op, bool modules)
{
	struct str name, dims = {"", 0}, types = {"", 0};
	if (op == ROW_NONE)
		return 0;
	name = profile_str(p, p->span.name[op]);
	profile_arg(p, p->span.args[op], ARG_INPUT_DIMS, &dims);
	profile_arg(p, p->span.args[op], ARG_INPUT_TYPES, &types);
	uint64_t h = hash_u64(hash_bytes(name.p, name.n) + hash_u64(hash_bytes(dims.p, dims.n)) + hash_u64(hash_bytes(types.p, types.n) + 1));
	for (uint32_t i = modules ? p->span.parent[op] : ROW_NONE; i != ROW_NONE; i = p->span.parent[i])
		if (graph_is_module(p, i)) {
			name = profile_str(p, p->span.name[i]);
			h = hash_u64(h * 31 + hash_bytes(name.p, name.n));
		}
	return h | 1;
}

/* The kind of a call; CALL_OTHER for a call that another one of its kind made (cuLaunchKernel in cudaLaunchKernel). To be called once for each row, in order. */
static enum graph_call graph_outer_call_of(struct graph_captures_work *w, uint32_t span)
{
	const struct profile *p = w->p;
	const enum graph_call kind = graph_call_of(w, span);
	const uint32_t last = w->last;
	if (kind == CALL_OTHER || (last != ROW_NONE && graph_call_of(w, last) == kind && p->span.track[last] == p->span.track[span] && span_end(p, span) <= span_end(p, last)))
		return CALL_OTHER;
	w->last = span;
	return kind;
}

static void graph_capture_fill(const struct graph_captures_work *w, struct graph_capture *c, const struct sort_item *call, uint32_t n)
{
	const struct profile *p = w->p;
	struct graph_sequence *s = &c->work;
	*s = (struct graph_sequence){NEW_ARRAY_RAW(n, uint32_t), NEW_ARRAY_RAW(n, uint64_t), NEW_ARRAY_RAW(n, uint8_t), n, true};
	c->op = NEW_ARRAY_RAW(n, uint64_t);
	c->plain = NEW_ARRAY_RAW(n, uint64_t);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t row = call[i].row;
		const enum graph_call kind = graph_call_of(w, row);
		struct str name = {"", 0};
		s->row[i] = row;
		s->kind[i] = kind == CALL_KERNEL ? GPU_KERNEL : kind == CALL_COPY ? GPU_MEMCPY : GPU_MEMSET;
		if (kind == CALL_KERNEL && !profile_arg(p, p->span.args[row], ARG_LAUNCHED_KERNEL, &name))
			s->named = false;
		s->key[i] = graph_key(s->kind[i], name);
		c->op[i] = graph_op_key(p, p->span.op[row], true);
		c->plain[i] = graph_op_key(p, p->span.op[row], false);
	}
}

/* Fills c->twin. call[i].tie: the waits before call i of its own thread. */
static void graph_find_twins(struct graph_capture *c, const struct sort_item *call)
{
	const struct graph_sequence *s = &c->work;
	struct sort_item *v = NEW_ARRAY_RAW(s->n, struct sort_item);
	for (uint32_t i = 0, waits = 0; i < s->n; i++) {
		waits = call[i].tie > waits ? call[i].tie : waits;
		v[i] = (struct sort_item){s->key[i], i, waits};
	}
	sort_items(v, s->n);
	c->twin = NEW_ARRAY(s->n, uint8_t);
	for (uint32_t i = 0, next; i < s->n; i = next) {
		bool differ = false;
		for (next = i + 1; next < s->n && v[next].key == v[i].key && v[next].tie == v[i].tie; next++)
			differ |= c->op[v[next].row] != c->op[v[i].row];
		for (uint32_t k = i; k < next; k++)
			c->twin[v[k].row] = differ;
	}
	mem_free(v);
}

int64_t graph_stated_batch(struct str name, bool of_capture)
{
	struct serving s;
	if (!serving_parse(name, &s) || (s.phase == SERVING_CAPTURE) != of_capture)
		return -1;
	return s.padded >= 0 ? s.padded : s.all.tokens >= 0 ? s.all.tokens : s.all.requests;
}

static int64_t graph_capture_batch(const struct profile *p, uint32_t begin)
{
	for (uint32_t i = p->span.parent[begin]; i != ROW_NONE; i = p->span.parent[i]) {
		const int64_t batch = p->span.kind[i] == SPAN_USER ? graph_stated_batch(profile_str(p, p->span.name[i]), true) : -1;
		if (batch >= 0)
			return batch;
	}
	return -1;
}

/* Looks at the next row of a thread. `open`: the thread's innermost open capture before the row; ROW_NONE. Returns the innermost one behind the row. */
static uint32_t graph_follow(struct graph_captures_work *w, uint32_t open, uint32_t row)
{
	const enum graph_call kind = graph_outer_call_of(w, row);
	const struct sort_item call = {sort_key_i64(w->p->span.start_ns[row]), row, 0};
	struct graph_open *o = open == ROW_NONE ? NULL : &w->open[open];
	if (kind == CALL_BEGIN) {
		MEM_PUSH(w->open, w->n_open, w->cap_open, ((struct graph_open){.begin = row, .end = ROW_NONE, .outer = open, .from = call.key, .to = UINT64_MAX}));
		return w->n_open - 1;
	}
	if (kind == CALL_END && o) {
		o->end = row;
		o->to = call.key;
		return o->outer;
	}
	if (o && (kind == CALL_FORK || kind == CALL_CHILD))
		o->loose = true;
	if (o && kind == CALL_FORK)
		o->waits++;
	if (kind < CALL_KERNEL || w->ran[row])
		return open;
	if (o)
		MEM_PUSH(o->own, o->n_own, o->cap_own, ((struct sort_item){call.key, row, o->waits}));
	else
		MEM_PUSH(w->outside, w->n_outside, w->cap_outside, call);
	return open;
}

/* Settles captures without an end: they lose the calls from the next capture on. That capture may have got their end, so that both are loose. */
static void graph_settle_ends(struct graph_captures_work *w)
{
	for (uint32_t i = 0; i < w->n_open; i++) {
		struct graph_open *o = &w->open[i], *outer;
		o->loose |= o->end == ROW_NONE;
		for (; o->outer != ROW_NONE && (outer = &w->open[o->outer])->end == ROW_NONE; o->outer = outer->outer) {
			o->loose |= o->outer + 1 == i;
			while (outer->n_own && outer->own[outer->n_own - 1].key >= o->from)
				outer->n_own--;
		}
		if (o->outer != ROW_NONE)
			o->loose = w->open[o->outer].loose = true;
	}
	for (uint32_t i = 0; i < w->n_open; i++) {
		struct graph_open *o = &w->open[i];
		if (o->end == ROW_NONE)
			o->to = o->n_own ? o->own[o->n_own - 1].key + 1 : o->from;
	}
}

static void graph_find_open(struct graph_captures_work *w)
{
	const struct profile *p = w->p;
	uint32_t open = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		open = graph_follow(w, i && p->span.track[i] != p->span.track[i - 1] ? ROW_NONE : open, i);
	graph_settle_ends(w);
}

static uint32_t graph_pid(const struct graph_captures_work *w, uint32_t row)
{
	return w->p->track.pid_text[w->p->span.track[row]];
}

/* Ends and begins of the n outermost captures, and calls outside of captures. Sorted by process, then by time; at one time ends, begins, calls. row < n: end of
 * capture `row`; row < 2n: begin of capture row - n; else call row - 2n of `outside`. */
static struct sort_item *graph_happenings(const struct graph_captures_work *w, const uint32_t *top, uint32_t n)
{
	struct sort_item *v = NEW_ARRAY_RAW(2 * (size_t)n + w->n_outside, struct sort_item);
	for (uint32_t i = 0; i < n; i++) {
		const struct graph_open *o = &w->open[top[i]];
		v[i] = (struct sort_item){o->to, i, graph_pid(w, o->begin)};
		v[n + i] = (struct sort_item){o->from, n + i, v[i].tie};
	}
	for (uint32_t i = 0; i < w->n_outside; i++)
		v[2 * n + i] = (struct sort_item){w->outside[i].key, 2 * n + i, graph_pid(w, w->outside[i].row)};
	sort_items(v, 2 * n + w->n_outside);
	for (uint32_t i = 0; i < 2 * n + w->n_outside; i++)
		v[i].key = v[i].tie;
	sort_items(v, 2 * n + w->n_outside);
	return v;
}

/* Gives calls outside of captures to the capture that another thread of their process has open, if it is the only one. */
static void graph_find_foreign(struct graph_captures_work *w)
{
	uint32_t *top = NEW_ARRAY_RAW(w->n_open, uint32_t), n = 0, depth = 0, sum = 0; /* depth: open captures; sum: of their numbers. With depth 1, the sum is the number of the open one */
	for (uint32_t i = 0; i < w->n_open; i++)
		if (w->open[i].outer == ROW_NONE && w->open[i].from < w->open[i].to)
			top[n++] = i;
	struct sort_item *v = graph_happenings(w, top, n);
	for (uint32_t i = 0; i < 2 * n + w->n_outside; i++) {
		const uint32_t what = v[i].row;
		if (what < n) {
			depth--;
			sum -= top[what];
		} else if (what < 2 * n) {
			if (depth)
				w->open[top[what - n]].overlaps = true;
			if (depth == 1)
				w->open[sum].overlaps = true;
			depth++;
			sum += top[what - n];
		} else if (depth == 1) {
			struct graph_open *o = &w->open[sum];
			MEM_PUSH(o->foreign, o->n_foreign, o->cap_foreign, w->outside[what - 2 * n]);
		}
	}
	mem_free(v);
	mem_free(top);
}

static void graph_captures_add_one(struct graph_captures *x, const struct graph_captures_work *w, const struct graph_open *o)
{
	struct graph_capture c = {.p = w->p, .begin = o->begin, .end = o->end, .loose = o->loose, .batch = graph_capture_batch(w->p, o->begin)};
	if (o->n_own) {
		MEM_PUSH(x->v, x->n, x->cap, c);
		graph_capture_fill(w, &x->v[x->n - 1], o->own, o->n_own);
		if (o->waits)
			graph_find_twins(&x->v[x->n - 1], o->own);
	}
	if (!o->n_foreign)
		return;
	struct sort_item *all = NEW_ARRAY_RAW(o->n_own + (size_t)o->n_foreign, struct sort_item);
	memcpy(all, o->foreign, o->n_foreign * sizeof *all);
	if (o->n_own)
		memcpy(all + o->n_foreign, o->own, o->n_own * sizeof *all);
	sort_items(all, o->n_own + o->n_foreign);
	c.loose |= o->overlaps;
	MEM_PUSH(x->v, x->n, x->cap, c);
	graph_capture_fill(w, &x->v[x->n - 1], all, o->n_own + o->n_foreign);
	if (o->waits)
		graph_find_twins(&x->v[x->n - 1], all);
	mem_free(all);
}

void graph_captures_add(struct graph_captures *x, const struct profile *p)
{
	if (!ANY_WHERE(i, 0u, p->strings.n, graph_call_of_name(profile_str(p, i)) == CALL_BEGIN))
		return;
	struct graph_captures_work w = {.p = p, .call_kind = NEW_ARRAY(p->strings.n, uint8_t), .ran = NEW_ARRAY(p->span.rows.n, uint8_t), .last = ROW_NONE};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] != ROW_NONE)
			w.ran[p->gpu_op.call[g]] = 1;
	graph_find_open(&w);
	graph_find_foreign(&w);
	for (uint32_t i = 0; i < w.n_open; i++) {
		graph_captures_add_one(x, &w, &w.open[i]);
		mem_free(w.open[i].own);
		mem_free(w.open[i].foreign);
	}
	mem_free(w.open);
	mem_free(w.outside);
	mem_free(w.call_kind);
	mem_free(w.ran);
}

void graph_captures_release(struct graph_captures *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		graph_sequence_release(&x->v[i].work);
		mem_free(x->v[i].op);
		mem_free(x->v[i].plain);
		mem_free(x->v[i].twin);
	}
	mem_free(x->v);
}
