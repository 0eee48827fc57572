#include "analysis/graph/graph_nodes.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

/* The making of a node. */
struct graph_made {
	int64_t node;
	int64_t original;        /* the node that it was copied from; ID_NONE = it is no copy */
	uint32_t event;          /* of span: the first one that tells of it */
	uint32_t pid;            /* the text of its process */
	uint32_t range;          /* the innermost range of the event's thread around it; a call counts. ROW_NONE = none is */
	bool twice;              /* two nodes have this id */
};

struct graph_nodes {
	struct graph_made *made; /* by node, then by event */
	uint32_t n, cap;
};

/* A node is copied when its graph is cloned, put into another graph as a child, or instantiated. So three copies and the original are followed back. */
enum { GRAPH_COPIES_DEEP = 4 };

static bool graph_is_node_event(const struct profile *p, uint32_t i)
{
	return p->span.kind[i] == SPAN_OTHER && span_ext_id(&p->span, i) != ID_NONE && str_eqc(profile_cat(p, p->span.cat[i]), "cuda_graph");
}

/* Adds the events of rows [from, to), which begin at one moment on one thread. `last`: the last range of the thread that has begun. Returns the innermost range
 * that has not ended if there are events, else `last`. */
static uint32_t graph_nodes_add(struct graph_nodes *x, const struct profile *p, uint32_t from, uint32_t to, uint32_t last)
{
	for (uint32_t i = from; i < to; i++) {
		if (!graph_is_node_event(p, i))
			continue;
		while (last != ROW_NONE && span_end(p, last) < p->span.start_ns[i])
			last = p->span.parent[last];
		const int64_t node = span_ext_id(&p->span, i), link = p->span.link_id[i];
		MEM_PUSH(x->made, x->n, x->cap, ((struct graph_made){node, link == node ? ID_NONE : link, i, p->track.pid_text[p->span.track[i]], last, false}));
	}
	return last;
}

static int graph_by_node(const void *a, const void *b)
{
	const struct graph_made *x = a, *y = b;
	return COMPARE(x->node, y->node) ?: COMPARE(x->pid, y->pid) ?: COMPARE(x->event, y->event);
}

static uint32_t graph_op_around(const struct profile *p, uint32_t range)
{
	return range == ROW_NONE ? ROW_NONE : graph_op_of(p, range);
}

/* Another event of the same node. One event may say that the node was made, another that it is a copy. Events that disagree are of two nodes with one id. */
static void graph_nodes_join_one(const struct profile *p, struct graph_made *m, const struct graph_made *other)
{
	if (m->original == ID_NONE)
		m->original = other->original;
	m->twice |= other->original != ID_NONE && other->original != m->original;
	m->twice |= m->original == ID_NONE && graph_op_around(p, m->range) != graph_op_around(p, other->range);
}

/* Joins the events of each node into one. */
static void graph_nodes_join(struct graph_nodes *x, const struct profile *p)
{
	uint32_t kept = 0;
	qsort(x->made, x->n, sizeof *x->made, graph_by_node);
	for (uint32_t i = 0; i < x->n; i++) {
		struct graph_made *last = kept ? &x->made[kept - 1] : NULL;
		if (!last || last->node != x->made[i].node || last->pid != x->made[i].pid)
			x->made[kept++] = x->made[i];
		else
			graph_nodes_join_one(p, last, &x->made[i]);
	}
	x->n = kept;
}

struct graph_nodes *graph_nodes_new(const struct profile *p)
{
	struct graph_nodes *x = NEW(struct graph_nodes);
	uint32_t last = ROW_NONE;
	for (uint32_t i = 0, next; i < p->span.rows.n; i = next) {
		if (i && p->span.track[i] != p->span.track[i - 1])
			last = ROW_NONE;
		for (next = i; next < p->span.rows.n && p->span.track[next] == p->span.track[i] && p->span.start_ns[next] == p->span.start_ns[i]; next++)
			last = span_nests(p->span.kind[next]) ? next : last;
		last = graph_nodes_add(x, p, i, next, last);
	}
	if (x->n) {
		graph_nodes_join(x, p);
		return x;
	}
	graph_nodes_free(x);
	return NULL;
}

void graph_nodes_free(struct graph_nodes *x)
{
	if (!x)
		return;
	mem_free(x->made);
	mem_free(x);
}

static const struct graph_made *graph_made_of(const struct graph_nodes *x, int64_t node, uint32_t pid)
{
	const uint32_t i = FIRST_WHERE(k, 0u, x->n, x->made[k].node > node || (x->made[k].node == node && x->made[k].pid >= pid));
	return i < x->n && x->made[i].node == node && x->made[i].pid == pid ? &x->made[i] : NULL;
}

/* The range in which the original of a node was made; a node that is no copy is its own original. ROW_NONE: not recorded, or outside of all ranges. */
static uint32_t graph_range_of(const struct graph_nodes *x, int64_t node, uint32_t pid)
{
	for (int deep = 0; deep < GRAPH_COPIES_DEEP; deep++) {
		const struct graph_made *made = graph_made_of(x, node, pid);
		if (!made || made->twice || made->original == ID_NONE)
			return made && !made->twice ? made->range : ROW_NONE;
		node = made->original;
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
		const uint32_t g = work->row[i];
		const int64_t node = p->launch.graph_node_id[p->gpu_op.launch[g]];
		const uint32_t range = node == ID_NONE ? ROW_NONE : graph_range_of(x, node, p->track.pid_text[p->span.track[p->gpu_op.call[g]]]);
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
