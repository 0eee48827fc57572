/* Events by opscope's own rules: the op tree (analysis/tree/optree.h), with API calls and the profiler's own work beside it. */
#include "analysis/memory/memory.h"
#include "analysis/tree/optree.h"
#include "analysis/tree/torch_events_work.h"
#include "base/mem.h"
#include "base/saturate.h"

struct own {
	struct torch_work *w;
	const struct profile *p;
	const struct optree *tree;
	uint32_t *of_node;   /* node -> candidate that it is, or that is around it; ROW_NONE */
	uint32_t *of_span;   /* span -> the same; of an API call what is around it */
	uint32_t n_nodes;    /* candidates that are nodes: the first ones, in order of rows */
};

static void add_nodes(struct own *o)
{
	const struct optree *tree = o->tree;
	for (uint32_t n = 0; n < tree->n; n++) {
		uint32_t up = tree->parent[n] == ROW_NONE ? ROW_NONE : o->of_node[tree->parent[n]];
		uint32_t key = torch_key(o->w, o->p->span.name[tree->span[n]]);
		if (key == TORCH_KEY_DROPPED) {
			o->of_node[n] = up;
			o->w->t->dropped_names++;
			continue;
		}
		o->of_node[n] = torch_add_span(o->w, tree->span[n], key);
		o->w->v[o->of_node[n]].parent = up;
	}
	o->n_nodes = o->w->n;
	const struct spans *s = &o->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t node = tree->node_of_span[i], up = s->parent[i];
		o->of_span[i] = node != ROW_NONE ? o->of_node[node] : up != ROW_NONE ? o->of_span[up] : ROW_NONE;
	}
}

/* The event that an API call stands below: by external id, else by time (as in optree.c). */
static uint32_t torch_events_own_around_call(const struct own *o, uint32_t call)
{
	const struct spans *s = &o->p->span;
	uint32_t op = s->op[call];
	bool by_id = op != ROW_NONE && span_ext_id(s, call) != ID_NONE && span_ext_id(s, op) == span_ext_id(s, call);
	return by_id ? o->of_span[op] : o->of_span[call];
}

/* API calls stand below an event, the driver call inside a runtime call below that; the profiler's own work and ranges that
 * belong to no one thread stand alone. */
static void add_others(struct own *o)
{
	const struct spans *s = &o->p->span;
	uint32_t last = ROW_NONE; /* the outermost call before, on the same thread */
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint8_t kind = s->kind[i];
		if (kind != SPAN_CALL && kind != SPAN_OVERHEAD && kind != SPAN_RANGE)
			continue;
		uint32_t key = torch_key(o->w, s->name[i]);
		if (key == TORCH_KEY_DROPPED)
			continue;
		uint32_t c = torch_add_span(o->w, i, key);
		if (kind != SPAN_CALL)
			continue;
		struct torch_candidate *v = &o->w->v[c];
		const struct torch_candidate *l = last == ROW_NONE ? NULL : &o->w->v[last];
		if (l && l->track == v->track && v->start_ns < l->end_ns && v->end_ns <= l->end_ns) {
			v->parent = last;
			continue;
		}
		v->parent = torch_events_own_around_call(o, i);
		last = c;
	}
}

/* A running sum per candidate, taken over to the sorted columns. */
struct memory_sums {
	int64_t *self[2]; /* host, device */
};

/* Rows of memory by thread, in order of time: order[first[t]] .. order[first[t + 1] - 1]. */
static uint32_t *by_track(const struct profile *p, uint32_t **first)
{
	const struct memories *m = &p->memory;
	uint32_t *at = NEW_ARRAY((size_t)p->track.rows.n + 2, uint32_t), *order = NEW_ARRAY_RAW(m->rows.n, uint32_t);
	for (uint32_t i = 0; i < m->rows.n; i++)
		at[m->track[i] + 2]++;
	for (uint32_t t = 0; t < p->track.rows.n; t++)
		at[t + 2] += at[t + 1];
	for (uint32_t i = 0; i < m->rows.n; i++)
		order[at[m->track[i] + 1]++] = i;
	*first = at;
	return order;
}

/* Gives each allocation to the innermost node of its thread with start <= time < end, else a row of its own. */
static void own_memory(struct own *o, struct memory_sums *sums)
{
	const struct profile *p = o->p;
	uint32_t *first, *order = by_track(p, &first), node = 0, n_nodes = o->n_nodes;
	for (uint32_t t = 0; t < p->track.rows.n; t++) {
		while (node < n_nodes && o->w->v[node].track < t)
			node++;
		uint32_t top = ROW_NONE; /* what is open; below it its parents */
		for (uint32_t k = first[t]; k < first[t + 1]; k++) {
			uint32_t row = order[k];
			int64_t time = p->memory.time_ns[row];
			for (; node < n_nodes && o->w->v[node].track == t && o->w->v[node].start_ns <= time; node++)
				top = node;
			while (top != ROW_NONE && o->w->v[top].end_ns <= time)
				top = o->w->v[top].parent;
			enum torch_side side = torch_memory_side(o->w->t, row);
			if (top != ROW_NONE && side != TORCH_NEITHER && memory_is_event(p, row))
				add_saturated(&sums->self[side][top], p->memory.bytes[row]);
			else
				torch_add_memory(o->w, row);
		}
	}
	mem_free(order);
	mem_free(first);
}

static void torch_events_own_put_memory(struct torch_work *w, const struct memory_sums *sums, uint32_t n_nodes)
{
	struct torch_events *t = w->t;
	for (uint32_t c = 0; c < n_nodes; c++) {
		t->cpu_mem_self[w->place[c]] = t->cpu_mem[w->place[c]] = sums->self[0][c];
		t->dev_mem_self[w->place[c]] = t->dev_mem[w->place[c]] = sums->self[1][c];
	}
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->kind[i] != TORCH_MEMORY || !memory_is_event(t->p, t->row[i]))
			continue; /* what could not be allocated is none */
		enum torch_side side = torch_memory_side(t, t->row[i]);
		int64_t bytes = t->p->memory.bytes[t->row[i]];
		if (side == TORCH_DEVICE)
			t->dev_mem[i] = t->dev_mem_self[i] = bytes;
		else if (side == TORCH_HOST)
			t->cpu_mem[i] = t->cpu_mem_self[i] = bytes;
	}
	for (uint32_t c = n_nodes; c-- > 0;) { /* children have higher numbers */
		if (w->v[c].parent == ROW_NONE)
			continue;
		uint32_t i = w->place[c], up = w->place[w->v[c].parent];
		add_saturated(&t->cpu_mem[up], t->cpu_mem[i]);
		add_saturated(&t->dev_mem[up], t->dev_mem[i]);
	}
}

static void torch_events_own_put_times(struct own *o)
{
	struct torch_events *t = o->w->t;
	const struct optree *tree = o->tree;
	for (uint32_t n = 0; n < tree->n; n++) {
		if (o->of_node[n] == ROW_NONE)
			continue;
		/* The own time of an op that is left out is its parent's. */
		uint32_t i = o->w->place[o->of_node[n]];
		bool itself = t->row[i] == tree->span[n];
		t->cpu_self[i] += tree->host_self[n];
		t->dev_self[i] += tree->dev_self[n];
		if (itself)
			t->dev_total[i] = tree->dev_total[n];
	}
	for (uint32_t c = o->n_nodes; c < o->w->n; c++) {
		uint32_t i = o->w->place[c];
		if (t->kind[i] == TORCH_MEMORY || (t->flags[i] & TORCH_ASYNC))
			continue;
		t->cpu_self[i] += t->end_ns[i] - t->start_ns[i];
		/* Calls inside a call: what they cover of it, each in full, since the driver makes one after the other. */
		uint32_t up = o->w->v[c].parent;
		if (up != ROW_NONE && up >= o->n_nodes)
			t->cpu_self[o->w->place[up]] -= t->end_ns[i] - t->start_ns[i];
	}
}

static void put_device_work(struct own *o)
{
	struct torch_events *t = o->w->t;
	const struct gpu_ops *g = &o->p->gpu_op;
	uint32_t *item = NEW_ARRAY_RAW(g->rows.n, uint32_t), *of = NEW_ARRAY_RAW(g->rows.n, uint32_t);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t node = o->tree->gpu_node[i], c = node == ROW_NONE ? ROW_NONE : o->of_node[node];
		item[i] = i;
		of[i] = c == ROW_NONE ? ROW_NONE : o->w->place[c];
		if (c != ROW_NONE)
			continue;
		t->unattributed++;
		t->unattributed_ns += g->dur_ns[i];
	}
	torch_put_kernels(t, item, of, g->rows.n);
	mem_free(item);
	mem_free(of);
}

void torch_events_own(struct torch_work *w)
{
	const struct profile *p = w->p;
	struct optree *tree = optree_new(p, &optree_own);
	struct own o = {.w = w, .p = p, .tree = tree};
	o.of_node = NEW_ARRAY_RAW(tree->n, uint32_t);
	o.of_span = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	add_nodes(&o);
	struct memory_sums sums = {{NULL, NULL}};
	if (w->t->memory_known) {
		sums.self[0] = NEW_ARRAY(o.n_nodes, int64_t);
		sums.self[1] = NEW_ARRAY(o.n_nodes, int64_t);
		own_memory(&o, &sums);
	}
	uint32_t n_nodes = o.n_nodes;
	add_others(&o);
	torch_sort(w);
	torch_events_own_put_times(&o);
	if (w->t->memory_known)
		torch_events_own_put_memory(w, &sums, n_nodes);
	put_device_work(&o);
	w->t->folded = tree->folded;
	mem_free(sums.self[0]);
	mem_free(sums.self[1]);
	mem_free(o.of_node);
	mem_free(o.of_span);
	optree_free(tree);
}
