#include "analysis/graph/graph_join.h"

#include "analysis/analysis.h"
#include "analysis/graph/graph_eager.h"
#include "analysis/graph/graph_nodes.h"
#include "analysis/graph/graph_replay.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

bool graph_join_is_due(const struct profile *p)
{
	if (p->reopened || p->gpu_op.evidence || !p->gpu_op.rows.n || p->durations_only)
		return false;
	return ANY_WHERE(i, 0u, p->strings.n, graph_is_launch(profile_str(p, i)));
}

/* The range of a server's iteration around a launch; ROW_NONE = none is. */
static uint32_t graph_iteration(const struct profile *p, uint32_t call)
{
	uint32_t i = p->span.parent[call];
	while (i != ROW_NONE && (p->span.kind[i] != SPAN_USER || graph_stated_batch(profile_str(p, p->span.name[i]), false) < 0))
		i = p->span.parent[i];
	return i;
}

/* The batch of the step around the launch, as graphs are captured for it; -1 = no server states it. */
static int64_t graph_batch(const struct profile *p, uint32_t call)
{
	const uint32_t iteration = graph_iteration(p, call);
	return iteration == ROW_NONE ? -1 : graph_stated_batch(profile_str(p, p->span.name[iteration]), false);
}

int graph_join_batches(struct profile *p, int64_t **batch, struct err *e)
{
	int n = 0;
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	struct graphs *x = graphs_new(p);
	*batch = NEW_ARRAY(x->n, int64_t);
	for (uint32_t i = 0; i < x->n; i++)
		(*batch)[i] = graph_batch(p, x->launch[i].call);
	sort_i64(*batch, x->n);
	/* A launch whose batch is not known may be of any. */
	for (uint32_t i = 0; i < x->n && (*batch)[0] >= 0; i++)
		if (n == 0 || (*batch)[i] != (*batch)[n - 1])
			(*batch)[n++] = (*batch)[i];
	graphs_free(x);
	return n;
}

static void graph_note(struct profile *p, const struct graphs *x, const struct graph_match *match, uint32_t without)
{
	for (uint32_t i = 0; i < x->n_graphs; i++)
		if (x->graph[i].odd)
			diag_add_n(&p->diags, "graph-changed", DIAG_NOTE, x->graph[i].odd, -1, "a launch of a graph replayed other work than the first one: what it replayed is left unattributed");
	for (uint32_t i = 0; i < x->n_graphs; i++)
		if (match[i].capture && !match[i].capture->work.named)
			diag_add(&p->diags, "graph-by-position", DIAG_NOTE, -1, "the calls that captured a graph do not name their kernels: which op a kernel of a replay belongs to is told by their order");
	if (without)
		diag_add_n(&p->diags, "graph-too-many", DIAG_LOSS, without, -1, "replays of graphs have more than %d ranges: those of later launches are left unattributed", GRAPH_MOST_COPIES);
}

/* Whether each iteration launches the graph so often. */
static bool graph_comes_in_turns(const struct profile *p, const struct graphs *x, uint32_t graph, uint32_t pieces)
{
	uint32_t iteration = ROW_NONE, n = 0;
	if (x->graph[graph].id != ID_NONE || x->graph[graph].odd || x->graph[graph].launches % pieces)
		return false;
	for (uint32_t i = x->graph[graph].first; i < x->n; i++) {
		if (x->launch[i].graph != graph)
			continue;
		const uint32_t around = graph_iteration(p, x->launch[i].call);
		if (around == ROW_NONE || (n % pieces ? around != iteration : around == iteration))
			return false;
		iteration = around;
		n++;
	}
	return true;
}

/* A model is captured in pieces, between which attention runs by itself. Pieces of equal layers replay the same work, and nothing but their order in the iteration tells them apart: the k-th launch is of the k-th capture. */
static void graph_tell_pieces(struct profile *p, struct graphs *x, const struct graph_captures *captures)
{
	for (uint32_t k = 0, n = x->n_graphs; k < n; k++) {
		const struct graph_launch *first = &x->launch[x->graph[k].first];
		const uint32_t launches = x->graph[k].launches, pieces = graph_count_equal(&first->work, x->graph[k].streams, captures, graph_batch(p, first->call));
		if (pieces < 2 || !graph_comes_in_turns(p, x, k, pieces))
			continue;
		uint32_t *turn = NEW_ARRAY_RAW(launches, uint32_t);
		for (uint32_t i = 0; i < launches; i++)
			turn[i] = i % pieces;
		graphs_divide(x, k, turn, pieces, true);
		mem_free(turn);
	}
}

/* The class of a batch among those that came before. */
static uint32_t graph_class_of(int64_t *known, uint32_t *n, int64_t batch)
{
	uint32_t i = 0;
	while (i < *n && known[i] != batch)
		i++;
	if (i == *n)
		known[(*n)++] = batch;
	return i;
}

/* Graphs of other batches may run kernels of the same names: launches whose steps pad to different captures are of different graphs. */
static void graph_tell_batches(const struct profile *p, struct graphs *x, const struct graph_captures *captures)
{
	enum { BATCHES_MOST = 256 };
	for (uint32_t k = 0, n = x->n_graphs; k < n; k++) {
		uint32_t *of = NEW_ARRAY_RAW(x->graph[k].launches, uint32_t), classes = 0, launch = 0;
		int64_t known[BATCHES_MOST + 1];
		for (uint32_t i = x->graph[k].first; i < x->n && classes <= BATCHES_MOST; i++)
			if (x->launch[i].graph == k)
				of[launch++] = graph_class_of(known, &classes, graph_padded_batch(captures, graph_batch(p, x->launch[i].call)));
		if (classes > 1 && classes <= BATCHES_MOST && x->graph[k].id == ID_NONE)
			graphs_divide(x, k, of, classes, false);
		mem_free(of);
	}
}

/* By the ids of nodes; by a capture; by a recording in which the same work ran without a graph. */
static void graph_join_one(struct graph_match *m, struct profile *p, const struct graphs *x, uint32_t graph, const struct graph_nodes *nodes, const struct graph_captures *captures,
                           struct profile *const *others, unsigned n)
{
	const struct graph *g = &x->graph[graph];
	const struct graph_launch *first = &x->launch[g->first];
	if (nodes && graph_nodes_match(nodes, p, &first->work, m))
		return;
	graph_match_find(m, p, &first->work, g->streams, captures, graph_batch(p, first->call), g);
	for (unsigned i = 0; i < n && !m->capture && g->streams == 1; i++) {
		struct graph_match eager;
		if (!graph_eager_match(others[i], p, &first->work, &eager))
			continue;
		graph_match_release(m);
		*m = eager;
		m->capture = &m->own;
	}
}

static void graph_join_with(struct profile *p, const struct graphs *x, const struct graph_captures *captures, struct profile *const *others, unsigned n)
{
	struct graph_match *match = NEW_ARRAY(x->n_graphs, struct graph_match);
	struct graph_nodes *nodes = graph_nodes_new(p);
	for (uint32_t i = 0; i < x->n_graphs; i++)
		graph_join_one(&match[i], p, x, i, nodes, captures, others, n);
	const uint32_t without = graph_replay_add(p, x, match);
	graph_note(p, x, match, without);
	graph_nodes_free(nodes);
	for (uint32_t i = 0; i < x->n_graphs; i++)
		graph_match_release(&match[i]);
	mem_free(match);
}

int graph_join(struct profile *p, struct profile *const *others, unsigned n, struct err *e)
{
	struct graph_captures captures = {0};
	const struct user_rules *rules = p->user_rules;
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (analysis_run(others[i], PASS_NEST | PASS_CORRELATE, e) < 0)
			return -1;
	struct graphs *x = graphs_new(p);
	if (x->n) {
		graph_captures_add(&captures, p);
		for (unsigned i = 0; i < n; i++)
			graph_captures_add(&captures, others[i]);
		graph_tell_batches(p, x, &captures);
		graph_tell_pieces(p, x, &captures);
		graph_join_with(p, x, &captures, others, n);
		graph_captures_release(&captures);
	}
	graphs_free(x);
	analysis_forget(p);
	p->user_rules = rules;
	return 0;
}
