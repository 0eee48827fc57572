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

/* Rows of gpu_op that a launch of a graph started, by the row of the launching call, then by start. */
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

/* Hash of kind, name, grid and block of piece i. */
static uint64_t graphs_piece(const struct profile *p, const struct graph_sequence *w, uint32_t i)
{
	return w->key[i] + graph_shape(p, w->row[i]);
}

static bool graphs_is_on_one_stream(const struct profile *p, const struct graph_sequence *w)
{
	return !ANY_WHERE(i, 1u, w->n, p->gpu_op.track[w->row[i]] != p->gpu_op.track[w->row[0]]);
}

/* The pieces grouped by stream, each stream in order of start. The key is a hash of all that the stream runs: streams that run the same have equal keys. */
static struct sort_item *graphs_by_stream(const struct profile *p, const struct graph_sequence *w, uint32_t *streams)
{
	struct sort_item *v = NEW_ARRAY_RAW(w->n, struct sort_item);
	*streams = 0;
	for (uint32_t i = 0; i < w->n; i++)
		v[i] = (struct sort_item){p->gpu_op.track[w->row[i]], i, 0};
	sort_items(v, w->n);
	for (uint32_t i = 0, next; i < w->n; i = next, (*streams)++) {
		uint64_t h = 0;
		for (next = i; next < w->n && v[next].key == v[i].key; next++)
			h = hash_u64(h * 31 + graphs_piece(p, w, v[next].row));
		for (uint32_t k = next; k-- > i;)
			v[k].key = h;
	}
	sort_items(v, w->n);
	return v;
}

static uint64_t graphs_content(const struct profile *p, const struct graph_launch *l)
{
	const struct graph_sequence *w = &l->work;
	uint64_t h = w->n;
	if (graphs_is_on_one_stream(p, w)) {
		for (uint32_t i = 0; i < w->n; i++)
			h = hash_u64(h * 31 + graphs_piece(p, w, i));
		return h;
	}
	uint32_t streams;
	struct sort_item *v = graphs_by_stream(p, w, &streams);
	for (uint32_t i = 0; i < w->n; i++)
		h = hash_u64(h * 31 + v[i].key);
	mem_free(v);
	return h;
}

static uint32_t graphs_streams(const struct profile *p, const struct graph_sequence *w)
{
	uint32_t streams;
	mem_free(graphs_by_stream(p, w, &streams));
	return streams;
}

/* Hash of the set of nodes; 0 = the recording does not state all of them. */
static uint64_t graphs_nodes(const struct profile *p, const struct graph_sequence *w)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		const int64_t node = p->launch.graph_node_id[p->gpu_op.launch[w->row[i]]];
		if (node == ID_NONE)
			return 0;
		sum += hash_u64((uint64_t)node + 1);
	}
	return sum;
}

static void graphs_tell_apart(struct graphs *x, const struct profile *p)
{
	struct idmap of_id;
	idmap_init(&of_id, INT64_MIN, INT64_MAX, x->n);
	for (uint32_t i = 0; i < x->n; i++) {
		struct graph_launch *l = &x->launch[i];
		const int64_t id = graphs_stated_id(p, l);
		l->content = graphs_content(p, l);
		l->next = ROW_NONE;
		/* An id is unique within its process. Launches without an id are told apart by their content. */
		const int64_t key = (int64_t)(id != ID_NONE ? hash_u64(hash_u64((uint64_t)id) + p->track.pid_text[p->span.track[l->call]]) : hash_u64(l->content + graphs_nodes(p, &l->work))) >> 1;
		l->graph = idmap_get(&of_id, key);
		if (l->graph == IDMAP_NONE) {
			l->graph = x->n_graphs;
			idmap_put(&of_id, key, l->graph);
			MEM_PUSH(x->graph, x->n_graphs, x->cap_graphs, ((struct graph){.id = id, .first = i, .last = i}));
		}
		struct graph *g = &x->graph[l->graph];
		if (g->launches++)
			x->launch[g->last].next = i;
		g->last = i;
	}
	idmap_release(&of_id);
}

/* ---- the typical launch, and how others stand to it ---- */

static void graphs_find_typical(struct graphs *x)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->n, struct sort_item);
	uint32_t *most = NEW_ARRAY(x->n_graphs, uint32_t);
	for (uint32_t i = 0; i < x->n; i++)
		v[i] = (struct sort_item){x->launch[i].content, i, 0};
	sort_items(v, x->n);
	for (uint32_t i = 0; i < x->n; i++)
		v[i].key = x->launch[v[i].row].graph;
	sort_items(v, x->n);
	for (uint32_t i = 0, next; i < x->n; i = next) {
		const struct graph_launch *l = &x->launch[v[i].row];
		struct graph *g = &x->graph[l->graph];
		for (next = i + 1; next < x->n && v[next].key == v[i].key && x->launch[v[next].row].content == l->content;)
			next++;
		const uint32_t n = x->launch[g->typical].work.n, times = next - i, known = most[l->graph];
		if (times > known || (times == known && (l->work.n > n || (l->work.n == n && v[i].row < g->typical)))) {
			g->typical = v[i].row;
			most[l->graph] = times;
		}
	}
	mem_free(most);
	mem_free(v);
}

/* The pieces of a launch, sorted for graphs_only_piece. */
struct graphs_pieces {
	struct sort_item *v;     /* row: number of the piece */
	bool nodes;              /* by the id of the node; else by graphs_piece */
};

static uint64_t graphs_name_of_piece(const struct profile *p, const struct graph_sequence *w, uint32_t i, bool nodes)
{
	return nodes ? sort_key_i64(p->launch.graph_node_id[p->gpu_op.launch[w->row[i]]]) : graphs_piece(p, w, i);
}

/* By node, if the pieces have different nodes; else by graphs_piece. The caller frees .v. */
static struct graphs_pieces graphs_pieces_of(const struct profile *p, const struct graph_sequence *w)
{
	struct graphs_pieces x = {NEW_ARRAY_RAW(w->n, struct sort_item), graphs_nodes(p, w) != 0};
	for (uint32_t i = 0; i < w->n; i++)
		x.v[i] = (struct sort_item){graphs_name_of_piece(p, w, i, x.nodes), i, 0};
	sort_items(x.v, w->n);
	if (!x.nodes || !ANY_WHERE(i, 1u, w->n, x.v[i].key == x.v[i - 1].key))
		return x;
	x.nodes = false;
	for (uint32_t i = 0; i < w->n; i++)
		x.v[i] = (struct sort_item){graphs_name_of_piece(p, w, i, false), i, 0};
	sort_items(x.v, w->n);
	return x;
}

/* The only piece of the typical launch that equals piece i of w; ROW_NONE = no piece does, or several do. */
static uint32_t graphs_only_piece(const struct profile *p, const struct graphs_pieces *typical, uint32_t n, const struct graph_sequence *w, uint32_t i)
{
	const uint64_t key = graphs_name_of_piece(p, w, i, typical->nodes);
	const uint32_t at = FIRST_WHERE(k, 0u, n, typical->v[k].key >= key);
	return at < n && typical->v[at].key == key && (at + 1 == n || typical->v[at + 1].key != key) ? typical->v[at].row : ROW_NONE;
}

/* By piece of w: the piece of the typical launch with the same node. The caller frees the array. NULL: a node is not stated, not in the typical launch, runs
 * twice, or runs another kernel. */
static uint32_t *graphs_part_by_node(const struct profile *p, const struct graphs_pieces *pieces, const struct graph_sequence *typical, const struct graph_sequence *w)
{
	if (!pieces->nodes || w->n > typical->n)
		return NULL;
	const struct graphs_pieces own = graphs_pieces_of(p, w);
	uint32_t *part = NEW_ARRAY_RAW(w->n, uint32_t), i = 0;
	while (i < w->n && own.nodes && (part[i] = graphs_only_piece(p, pieces, typical->n, w, i)) != ROW_NONE && graphs_piece(p, typical, part[i]) == graphs_piece(p, w, i))
		i++;
	mem_free(own.v);
	if (i == w->n)
		return part;
	mem_free(part);
	return NULL;
}

/* The same of work on one stream that is the begin or the end of the typical launch. NULL: it is neither, or both places are possible. */
static uint32_t *graphs_part_by_place(const struct profile *p, const struct graphs_pieces *pieces, const struct graph_sequence *typical, const struct graph_sequence *w)
{
	uint32_t i = 0, at = ROW_NONE;
	if (pieces->nodes || w->n >= typical->n || !graphs_is_on_one_stream(p, w) || !graphs_is_on_one_stream(p, typical))
		return NULL;
	while (i < w->n && (at = graphs_only_piece(p, pieces, typical->n, w, i)) == ROW_NONE)
		i++;
	if (i == w->n || at < i)
		return NULL;
	const uint32_t from = at - i;
	if (from && from + w->n != typical->n)
		return NULL;
	if (from + w->n > typical->n || ANY_WHERE(k, 0u, w->n, graphs_piece(p, typical, from + k) != graphs_piece(p, w, k)))
		return NULL;
	uint32_t *part = NEW_ARRAY_RAW(w->n, uint32_t);
	for (uint32_t k = 0; k < w->n; k++)
		part[k] = from + k;
	return part;
}

/* Moves piece i to place[i]; `place` is a permutation. */
static void graphs_order(struct graph_sequence *w, const uint32_t *place)
{
	uint32_t *row = NEW_ARRAY_RAW(w->n, uint32_t);
	uint64_t *key = NEW_ARRAY_RAW(w->n, uint64_t);
	uint8_t *kind = NEW_ARRAY_RAW(w->n, uint8_t);
	for (uint32_t i = 0; i < w->n; i++) {
		row[place[i]] = w->row[i];
		key[place[i]] = w->key[i];
		kind[place[i]] = w->kind[i];
	}
	graph_sequence_release(w);
	w->row = row;
	w->key = key;
	w->kind = kind;
}

/* By piece of w: its place in the typical launch, whose streams run the same. `typical`: its pieces by stream. The caller frees the array. */
static uint32_t *graphs_place_by_stream(const struct profile *p, const struct sort_item *typical, const struct graph_sequence *w)
{
	uint32_t streams, *place = NEW_ARRAY_RAW(w->n, uint32_t);
	struct sort_item *v = graphs_by_stream(p, w, &streams);
	for (uint32_t i = 0; i < w->n; i++)
		place[v[i].row] = typical[i].row;
	mem_free(v);
	return place;
}

/* Brings typical launches into one order, and finds which of the others are parts. Of a graph on several streams, or with odd launches. */
static void graphs_compare(struct graphs *x, const struct profile *p, struct graph *g)
{
	const struct graph_sequence *typical = &x->launch[g->typical].work;
	const struct graphs_pieces pieces = graphs_pieces_of(p, typical);
	uint32_t streams;
	struct sort_item *by_stream = graphs_by_stream(p, typical, &streams);
	for (uint32_t i = g->first; i != ROW_NONE; i = x->launch[i].next) {
		struct graph_launch *l = &x->launch[i];
		if (i == g->typical)
			continue;
		uint32_t *part = graphs_part_by_node(p, &pieces, typical, &l->work);
		if (!graph_is_typical(x, l)) {
			l->part = part ?: graphs_part_by_place(p, &pieces, typical, &l->work);
			g->odd++;
			g->parts += l->part != NULL;
			continue;
		}
		if (g->streams > 1) {
			part = part ?: graphs_place_by_stream(p, by_stream, &l->work);
			graphs_order(&l->work, part);
		}
		mem_free(part);
	}
	mem_free(by_stream);
	mem_free(pieces.v);
}

static void graphs_settle(struct graphs *x, const struct profile *p)
{
	for (uint32_t k = 0; k < x->n_graphs; k++)
		x->graph[k].typical = x->graph[k].first;
	graphs_find_typical(x);
	for (uint32_t k = 0; k < x->n_graphs; k++) {
		struct graph *g = &x->graph[k];
		bool odd = false;
		g->streams = graphs_streams(p, &x->launch[g->typical].work);
		for (uint32_t i = g->first; i != ROW_NONE && !odd; i = x->launch[i].next)
			odd = !graph_is_typical(x, &x->launch[i]);
		if (g->launches > 1 && (odd || g->streams > 1))
			graphs_compare(x, p, g);
	}
}

struct graphs *graphs_new(const struct profile *p)
{
	struct graphs *x = NEW(struct graphs);
	assert(p->gpu_op.rows.n == 0 || p->gpu_op.call);
	graphs_find_launches(x, p);
	graphs_tell_apart(x, p);
	graphs_settle(x, p);
	return x;
}

/* Appends a launch that is in no graph. */
static void graphs_append(struct graphs *x, uint32_t graph, uint32_t launch)
{
	struct graph *g = &x->graph[graph];
	x->launch[launch].graph = graph;
	x->launch[launch].next = ROW_NONE;
	if (g->launches++)
		x->launch[g->last].next = launch;
	else
		g->first = launch;
	g->last = launch;
}

void graphs_divide(struct graphs *x, uint32_t graph, const uint32_t *of, uint32_t n, bool in_turns)
{
	const struct graph whole = x->graph[graph];
	const uint32_t first_new = x->n_graphs;
	uint32_t k = 0;
	assert(whole.odd == 0);
	for (uint32_t c = 0; c < n; c++) {
		const struct graph g = {.id = whole.id, .streams = whole.streams, .turn = in_turns ? c : 0, .turns = in_turns ? n : 0};
		if (c == 0)
			x->graph[graph] = g;
		else
			MEM_PUSH(x->graph, x->n_graphs, x->cap_graphs, g);
	}
	for (uint32_t i = whole.first, next; i != ROW_NONE; i = next) {
		assert(k < whole.launches && of[k] < n);
		next = x->launch[i].next;
		graphs_append(x, of[k] ? first_new + of[k] - 1 : graph, i);
		k++;
	}
	for (uint32_t c = 0; c < n; c++) {
		struct graph *g = &x->graph[c ? first_new + c - 1 : graph];
		assert(g->launches);
		g->typical = g->first;
	}
}

/* The graph of launches with this part of this graph; a new one for the first of them. */
static uint32_t graphs_of_part(struct graphs *x, struct idmap *of_part, uint32_t launch)
{
	const struct graph_launch *l = &x->launch[launch];
	const int64_t key = (int64_t)(hash_bytes(l->part, l->work.n * sizeof *l->part) + hash_u64(l->graph + 1));
	uint32_t graph = idmap_get(of_part, key);
	if (graph != IDMAP_NONE)
		return graph;
	const struct graph whole = x->graph[l->graph];
	graph = x->n_graphs;
	idmap_put(of_part, key, graph);
	MEM_PUSH(x->graph, x->n_graphs, x->cap_graphs, ((struct graph){.id = whole.id, .typical = launch, .streams = whole.streams, .is_part = true, .whole = l->graph}));
	return graph;
}

void graphs_divide_parts(struct graphs *x)
{
	struct idmap of_part;
	uint32_t parts = 0;
	for (uint32_t k = 0; k < x->n_graphs; k++)
		parts += x->graph[k].parts;
	idmap_init(&of_part, INT64_MIN, INT64_MAX, parts);
	for (uint32_t k = 0, n = x->n_graphs; k < n; k++) {
		if (!x->graph[k].parts)
			continue;
		uint32_t next = x->graph[k].first;
		x->graph[k].odd -= x->graph[k].parts;
		x->graph[k].parts = x->graph[k].launches = 0;
		for (uint32_t i = next; i != ROW_NONE; i = next) {
			next = x->launch[i].next;
			graphs_append(x, x->launch[i].part ? graphs_of_part(x, &of_part, i) : k, i);
		}
	}
	idmap_release(&of_part);
}

void graphs_free(struct graphs *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->n; i++) {
		graph_sequence_release(&x->launch[i].work);
		mem_free(x->launch[i].part);
	}
	mem_free(x->launch);
	mem_free(x->graph);
	mem_free(x);
}
