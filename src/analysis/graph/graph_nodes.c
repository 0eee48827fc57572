#include "analysis/graph/graph_nodes.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

struct graph_nodes {
	const struct profile *p;
	struct sort_item *event; /* by node; row is of span */
	uint32_t n;
};

/* At most three copies are followed back. */
enum { GRAPH_COPIES_DEEP = 4 };

struct graph_nodes *graph_nodes_new(const struct profile *p)
{
	struct graph_nodes *x = NEW(struct graph_nodes);
	uint32_t cap = 0;
	x->p = p;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OTHER && span_ext_id(&p->span, i) != ID_NONE && str_eqc(profile_cat(p, p->span.cat[i]), "cuda_graph"))
			MEM_PUSH(x->event, x->n, cap, ((struct sort_item){sort_key_i64(span_ext_id(&p->span, i)), i, 0}));
	sort_items(x->event, x->n);
	if (x->n)
		return x;
	graph_nodes_free(x);
	return NULL;
}

void graph_nodes_free(struct graph_nodes *x)
{
	if (!x)
		return;
	mem_free(x->event);
	mem_free(x);
}

static bool graph_same_process(const struct profile *p, uint32_t track_a, uint32_t track_b)
{
	return p->track.pid_text[track_a] == p->track.pid_text[track_b];
}

/* When the node was made: the event of the node that is no copy. `track` is of the process. ROW_NONE = it was not recorded. */
static uint32_t graph_node_event(const struct graph_nodes *x, int64_t node, uint32_t track)
{
	const struct profile *p = x->p;
	for (int deep = 0; deep < GRAPH_COPIES_DEEP; deep++) {
		const uint64_t key = sort_key_i64(node);
		uint32_t made = ROW_NONE;
		int64_t original = ID_NONE;
		for (uint32_t i = FIRST_WHERE(k, 0u, x->n, x->event[k].key >= key); i < x->n && x->event[i].key == key; i++) {
			const uint32_t row = x->event[i].row;
			if (!graph_same_process(p, p->span.track[row], track))
				continue;
			made = made == ROW_NONE ? row : made;
			original = p->span.link_id[row] != ID_NONE && p->span.link_id[row] != node ? p->span.link_id[row] : original;
		}
		if (original == ID_NONE)
			return made;
		node = original;
	}
	return ROW_NONE;
}

/* The innermost range of the event's thread around it; a call counts. ROW_NONE = none is. */
static uint32_t graph_range_around(const struct profile *p, uint32_t event)
{
	const struct spans *s = &p->span;
	const uint32_t track = s->track[event];
	const int64_t at_ns = s->start_ns[event];
	uint32_t i = FIRST_WHERE(k, 0u, s->rows.n, s->track[k] > track || (s->track[k] == track && s->start_ns[k] > at_ns));
	while (i-- > 0 && s->track[i] == track)
		if (span_nests(s->kind[i])) {
			while (i != ROW_NONE && span_end(p, i) < at_ns)
				i = s->parent[i];
			return i;
		}
	return ROW_NONE;
}

bool graph_nodes_match(const struct graph_nodes *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m)
{
	struct graph_sequence *calls = &m->own.work;
	bool found = false;
	*m = (struct graph_match){.evidence = NEW_ARRAY_RAW(work->n, uint8_t), .call = NEW_ARRAY_RAW(work->n, uint32_t), .own = {.p = p, .begin = ROW_NONE, .end = ROW_NONE, .batch = -1}};
	m->own.op = NEW_ARRAY(work->n, uint64_t);
	*calls = (struct graph_sequence){NEW_ARRAY_RAW(work->n, uint32_t), NEW_ARRAY_RAW(work->n, uint64_t), NEW_ARRAY_RAW(work->n, uint8_t), work->n, true};
	for (uint32_t i = 0; i < work->n; i++) {
		const uint32_t g = work->row[i], call = p->gpu_op.call[g];
		const int64_t node = p->launch.graph_node_id[p->gpu_op.launch[g]];
		const uint32_t event = node == ID_NONE ? ROW_NONE : graph_node_event(x, node, p->span.track[call]), range = event == ROW_NONE ? ROW_NONE : graph_range_around(p, event);
		const bool known = range != ROW_NONE && graph_op_of(p, range) != ROW_NONE;
		calls->row[i] = range;
		calls->key[i] = work->key[i];
		calls->kind[i] = work->kind[i];
		m->evidence[i] = known ? EVIDENCE_NODE : EVIDENCE_UNKNOWN;
		m->call[i] = known ? i : ROW_NONE;
		found |= known;
	}
	m->capture = &m->own;
	if (!found)
		graph_match_release(m);
	return found;
}
