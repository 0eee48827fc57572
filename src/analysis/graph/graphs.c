#include "analysis/graph/graphs.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <assert.h>

bool graph_is_launch(struct str name)
{
	return str_has(name, STR("GraphLaunch"));
}

uint64_t graph_key(uint8_t kind, struct str name)
{
	return kind == GPU_KERNEL ? hash_u64(hash_bytes(name.p, name.n) + 1) : kind;
}

void graph_sequence_release(struct graph_sequence *s)
{
	mem_free(s->row);
	mem_free(s->key);
	mem_free(s->kind);
}

/* ---- launches ---- */

/* Of each row of gpu_op that a graph's launch started, by that call, then by start. */
static struct sort_item *graphs_work(const struct profile *p, uint32_t *n)
{
	struct sort_item *v = NULL;
	size_t cap = 0;
	uint8_t *is_launch = NEW_ARRAY(p->strings.n, uint8_t); /* 1 = no, 2 = yes; 0 = not looked at */
	*n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		const uint32_t call = p->gpu_op.call[g];
		if (call == ROW_NONE)
			continue;
		uint8_t *known = &is_launch[p->span.name[call]];
		if (!*known)
			*known = 1 + graph_is_launch(profile_str(p, p->span.name[call]));
		if (*known == 2)
			MEM_PUSH(v, *n, cap, ((struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, call}));
	}
	mem_free(is_launch);
	sort_items(v, *n);
	for (uint32_t i = 0; i < *n; i++)
		v[i].key = v[i].tie;
	sort_items(v, *n);
	return v;
}

static void graphs_add_work(const struct profile *p, const struct sort_item *v, uint32_t n, struct graph_launch *l)
{
	struct graph_sequence *w = &l->work;
	*w = (struct graph_sequence){NEW_ARRAY_RAW(n, uint32_t), NEW_ARRAY_RAW(n, uint64_t), NEW_ARRAY_RAW(n, uint8_t), n, true};
	l->start_ns = p->gpu_op.start_ns[v[0].row];
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t g = v[i].row;
		const int64_t end_ns = p->gpu_op.start_ns[g] + p->gpu_op.dur_ns[g];
		w->row[i] = g;
		w->kind[i] = p->gpu_op.kind[g];
		w->key[i] = graph_key(p->gpu_op.kind[g], profile_str(p, p->gpu_op.name[g]));
		l->end_ns = i && l->end_ns > end_ns ? l->end_ns : end_ns;
	}
}

static void graphs_find_launches(struct graphs *x, const struct profile *p)
{
	uint32_t n, cap = 0;
	struct sort_item *v = graphs_work(p, &n);
	for (uint32_t i = 0, next; i < n; i = next) {
		next = i + 1;
		while (next < n && v[next].tie == v[i].tie)
			next++;
		if (ANY_WHERE(k, i, next, gpu_is_graph(p, v[k].row))) {
			x->whole++;
			continue;
		}
		struct graph_launch l = {.call = v[i].tie};
		graphs_add_work(p, v + i, next - i, &l);
		MEM_PUSH(x->launch, x->n, cap, l);
	}
	mem_free(v);
}

/* ---- graphs ---- */

static int64_t graphs_stated_id(const struct profile *p, const struct graph_launch *l)
{
	const int64_t id = p->launch.graph_id[p->gpu_op.launch[l->work.row[0]]];
	return id ? id : ID_NONE;
}

uint64_t graph_shape(const struct profile *p, uint32_t g)
{
	const uint32_t l = p->gpu_op.launch[g];
	const int32_t shape[] = {p->launch.grid_x[l], p->launch.grid_y[l], p->launch.grid_z[l], p->launch.block_x[l], p->launch.block_y[l], p->launch.block_z[l]};
	return hash_bytes(shape, sizeof shape);
}

static uint64_t graphs_content(const struct profile *p, const struct graph_launch *l)
{
	uint64_t h = l->work.n;
	for (uint32_t i = 0; i < l->work.n; i++)
		h = hash_u64(h * 31 + l->work.key[i] + graph_shape(p, l->work.row[i]));
	return h;
}

static uint32_t graphs_streams(const struct profile *p, const struct graph_launch *l)
{
	struct sort_item *v = NEW_ARRAY_RAW(l->work.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->work.n; i++)
		v[i] = (struct sort_item){p->gpu_op.track[l->work.row[i]], i, 0};
	sort_items(v, l->work.n);
	for (uint32_t i = 0; i < l->work.n; i++)
		n += i == 0 || v[i].key != v[i - 1].key;
	mem_free(v);
	return n;
}

static void graphs_tell_apart(struct graphs *x, const struct profile *p)
{
	struct idmap of_id;
	idmap_init(&of_id, INT64_MIN, INT64_MAX, x->n);
	for (uint32_t i = 0; i < x->n; i++) {
		struct graph_launch *l = &x->launch[i];
		const int64_t id = graphs_stated_id(p, l);
		l->content = graphs_content(p, l);
		/* Ids are a process's own. A content takes the place of one that is not stated. */
		const int64_t key = (int64_t)(id != ID_NONE ? hash_u64(hash_u64((uint64_t)id) + p->track.pid_text[p->span.track[l->call]]) : l->content) >> 1;
		l->graph = idmap_get(&of_id, key);
		if (l->graph == IDMAP_NONE) {
			l->graph = x->n_graphs;
			idmap_put(&of_id, key, l->graph);
			MEM_PUSH(x->graph, x->n_graphs, x->cap_graphs, ((struct graph){.id = id, .first = i, .streams = graphs_streams(p, l)}));
		}
		struct graph *g = &x->graph[l->graph];
		g->launches++;
		g->odd += l->content != x->launch[g->first].content;
	}
	idmap_release(&of_id);
}

struct graphs *graphs_new(const struct profile *p)
{
	struct graphs *x = NEW(struct graphs);
	assert(p->gpu_op.rows.n == 0 || p->gpu_op.call);
	graphs_find_launches(x, p);
	graphs_tell_apart(x, p);
	return x;
}

void graphs_divide(struct graphs *x, uint32_t graph, const uint32_t *of, uint32_t n, bool in_turns)
{
	const struct graph whole = x->graph[graph];
	const uint32_t first_new = x->n_graphs;
	uint32_t k = 0;
	for (uint32_t c = 0; c < n; c++) {
		const struct graph g = {.id = whole.id, .first = ROW_NONE, .streams = whole.streams, .piece = in_turns ? c : 0, .pieces = in_turns ? n : 0};
		if (c == 0)
			x->graph[graph] = g;
		else
			MEM_PUSH(x->graph, x->n_graphs, x->cap_graphs, g);
	}
	for (uint32_t i = whole.first; i < x->n; i++) {
		if (x->launch[i].graph != graph)
			continue;
		assert(k < whole.launches && of[k] < n);
		const uint32_t to = of[k] ? first_new + of[k] - 1 : graph;
		struct graph *g = &x->graph[to];
		k++;
		x->launch[i].graph = to;
		g->first = g->first == ROW_NONE ? i : g->first;
		g->launches++;
		g->odd += x->launch[i].content != x->launch[g->first].content;
	}
}

void graphs_free(struct graphs *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->n; i++)
		graph_sequence_release(&x->launch[i].work);
	mem_free(x->launch);
	mem_free(x->graph);
	mem_free(x);
}
