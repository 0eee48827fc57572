#include "analysis/graph/graph_captures.h"

#include "analysis/names/names.h"
#include "analysis/steps/serving.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

struct graph_captures_work {
	const struct profile *p;
	uint8_t *call_kind;      /* of a name, enum graph_call + 1; 0 = not looked at */
	uint8_t *ran;            /* of a span: the device work of this call was recorded */
	struct sort_item *call;
	uint32_t n_calls;
};

enum graph_call { CALL_OTHER, CALL_BEGIN, CALL_END, CALL_FORK, CALL_KERNEL, CALL_COPY, CALL_SET };

static enum graph_call graph_call_of_name(struct str name)
{
	if (str_has(name, STR("StreamBeginCapture")))
		return CALL_BEGIN;
	if (str_has(name, STR("StreamEndCapture")))
		return CALL_END;
	if (str_has(name, STR("StreamWaitEvent")))
		return CALL_FORK;
	if (str_has(name, STR("Launch")) && !graph_is_launch(name) && !str_has(name, STR("HostFunc")))
		return CALL_KERNEL;
	if (str_has(name, STR("Memcpy")))
		return CALL_COPY;
	return str_has(name, STR("Memset")) ? CALL_SET : CALL_OTHER;
}

static enum graph_call graph_call_of(struct graph_captures_work *w, uint32_t span)
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

static void graph_capture_fill(struct graph_captures_work *w, struct graph_capture *c, const struct sort_item *call, uint32_t n)
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

/* All calls that would make nodes, by start. */
static void graph_find_calls(struct graph_captures_work *w)
{
	const struct profile *p = w->p;
	uint32_t cap = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (graph_call_of(w, i) >= CALL_KERNEL && !w->ran[i])
			MEM_PUSH(w->call, w->n_calls, cap, ((struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0}));
	sort_items(w->call, w->n_calls);
}

/* Those between these two: of their thread, or of all threads of the process. */
static uint32_t graph_capture_calls(const struct graph_captures_work *w, uint32_t begin, uint32_t end, bool all_threads, struct sort_item **call)
{
	const struct profile *p = w->p;
	const uint64_t from = sort_key_i64(p->span.start_ns[begin]), to = sort_key_i64(p->span.start_ns[end]);
	uint32_t n = 0, cap = 0;
	*call = NULL;
	for (uint32_t i = FIRST_WHERE(k, 0u, w->n_calls, w->call[k].key >= from); i < w->n_calls && w->call[i].key < to; i++) {
		const uint32_t track = p->span.track[w->call[i].row], own = p->span.track[begin];
		if (track == own || (all_threads && p->track.pid_text[track] == p->track.pid_text[own]))
			MEM_PUSH(*call, n, cap, w->call[i]);
	}
	return n;
}

static void graph_captures_add_one(struct graph_captures *x, struct graph_captures_work *w, uint32_t begin, uint32_t end)
{
	struct sort_item *own, *all;
	const uint32_t n = graph_capture_calls(w, begin, end, false, &own), n_all = graph_capture_calls(w, begin, end, true, &all);
	const struct graph_capture c = {.p = w->p, .begin = begin, .end = end, .forked = ANY_WHERE(i, begin, end, graph_call_of(w, i) == CALL_FORK), .batch = graph_capture_batch(w->p, begin)};
	if (n) {
		MEM_PUSH(x->v, x->n, x->cap, c);
		graph_capture_fill(w, &x->v[x->n - 1], own, n);
	}
	if (n_all > n) {
		MEM_PUSH(x->v, x->n, x->cap, c);
		graph_capture_fill(w, &x->v[x->n - 1], all, n_all);
	}
	mem_free(own);
	mem_free(all);
}

void graph_captures_add(struct graph_captures *x, const struct profile *p)
{
	struct graph_captures_work w = {.p = p, .call_kind = NEW_ARRAY(p->strings.n, uint8_t), .ran = NEW_ARRAY(p->span.rows.n, uint8_t)};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] != ROW_NONE)
			w.ran[p->gpu_op.call[g]] = 1;
	graph_find_calls(&w);
	uint32_t begin = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		const enum graph_call kind = graph_call_of(&w, i);
		if (i && p->span.track[i] != p->span.track[i - 1])
			begin = ROW_NONE;
		if (kind == CALL_BEGIN)
			begin = i;
		if (kind != CALL_END || begin == ROW_NONE)
			continue;
		graph_captures_add_one(x, &w, begin, i);
		begin = ROW_NONE;
	}
	mem_free(w.call_kind);
	mem_free(w.call);
	mem_free(w.ran);
}

void graph_captures_release(struct graph_captures *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		graph_sequence_release(&x->v[i].work);
		mem_free(x->v[i].op);
		mem_free(x->v[i].plain);
	}
	mem_free(x->v);
}
