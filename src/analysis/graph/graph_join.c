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

/* What an inference server states around a launch. */
struct graph_when {
	uint32_t iteration;      /* range of the iteration, of span; ROW_NONE = not stated */
	int64_t batch;           /* of the iteration (graph_stated_batch); -1 = not stated */
};

/* By launch; the caller frees the array. Each name is looked at once. */
static struct graph_when *graph_find_when(const struct profile *p, const struct graphs *x)
{
	struct graph_when *when = NEW_ARRAY_RAW(x->n, struct graph_when);
	int64_t *batch = NEW_ARRAY_RAW(p->strings.n, int64_t); /* that a name states */
	uint8_t *known = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t l = 0; l < x->n; l++) {
		when[l] = (struct graph_when){ROW_NONE, -1};
		for (uint32_t i = p->span.parent[x->launch[l].call]; i != ROW_NONE && when[l].batch < 0; i = p->span.parent[i]) {
			const uint32_t name = p->span.name[i];
			if (p->span.kind[i] != SPAN_USER)
				continue;
			if (!known[name]) {
				known[name] = 1;
				batch[name] = graph_stated_batch(profile_str(p, name), false);
			}
			if (batch[name] >= 0)
				when[l] = (struct graph_when){i, batch[name]};
		}
	}
	mem_free(batch);
	mem_free(known);
	return when;
}

int graph_join_batches(struct profile *p, int64_t **batch, struct err *e)
{
	int n = 0;
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	struct graphs *x = graphs_new(p);
	struct graph_when *when = graph_find_when(p, x);
	*batch = NEW_ARRAY(x->n, int64_t);
	for (uint32_t i = 0; i < x->n; i++)
		(*batch)[i] = when[i].batch;
	sort_i64(*batch, x->n);
	/* A launch whose batch is not stated (-1, sorted first) may be of any batch. */
	for (uint32_t i = 0; i < x->n && (*batch)[0] >= 0; i++)
		if (n == 0 || (*batch)[i] != (*batch)[n - 1])
			(*batch)[n++] = (*batch)[i];
	mem_free(when);
	graphs_free(x);
	return n;
}

static void graph_note(struct profile *p, const struct graphs *x, const struct graph_match *match, uint32_t without)
{
	for (uint32_t i = 0; i < x->n_graphs; i++)
		if (x->graph[i].odd)
			diag_add_n(&p->diags, "graph-changed", DIAG_NOTE, x->graph[i].odd, -1, "a launch of a graph replayed other work than most of its launches: what it replayed is left unattributed");
	for (uint32_t i = 0; i < x->n_graphs; i++)
		if (match[i].capture && !match[i].capture->work.named)
			diag_add(&p->diags, "graph-by-position", DIAG_NOTE, -1, "the calls that captured a graph do not name their kernels: which op a kernel of a replay belongs to is told by their order");
	for (uint32_t i = 0; i < x->n_graphs; i++)
		if (match[i].implausible)
			diag_add(&p->diags, "graph-of-other-program", DIAG_NOTE, -1, "a capture has as many calls as a graph has pieces of work, but its ops launch no kernels of such names: it is taken for another program's");
	if (without)
		diag_add_n(&p->diags, "graph-too-many", DIAG_LOSS, without, -1, "replays of graphs have more than %d ranges: those of later launches are left unattributed", GRAPH_MOST_COPIES);
}

/* What there is to attribute launches by. */
struct graph_join {
	struct profile *p;
	struct graphs *graphs;
	struct graph_when *when; /* by launch */
	struct graph_index *captures;
	struct graph_nodes *nodes; /* NULL = the recording tells of no nodes */
	struct graph_eager **eager; /* by other recording */
	unsigned others;
};

/* Whether each iteration launches the graph `turns` times. */
static bool graph_comes_in_turns(const struct graph_join *j, uint32_t graph, uint32_t turns)
{
	const struct graphs *x = j->graphs;
	uint32_t iteration = ROW_NONE, n = 0;
	if (x->graph[graph].id != ID_NONE || x->graph[graph].odd || x->graph[graph].launches % turns)
		return false;
	for (uint32_t i = x->graph[graph].first; i != ROW_NONE; i = x->launch[i].next) {
		const uint32_t around = j->when[i].iteration;
		if (around == ROW_NONE || (n % turns ? around != iteration : around == iteration))
			return false;
		iteration = around;
		n++;
	}
	return true;
}

/* Servers capture a model in several graphs, between which attention runs by itself. The graphs of equal layers replay the same work, and only their order in
 * the iteration tells them apart: the k-th launch belongs to the k-th capture. */
static void graph_tell_turns(struct graph_join *j)
{
	struct graphs *x = j->graphs;
	for (uint32_t k = 0, n = x->n_graphs; k < n; k++) {
		const struct graph_launch *typical = &x->launch[x->graph[k].typical];
		const uint32_t launches = x->graph[k].launches, turns = graph_count_equal(j->captures, &typical->work, x->graph[k].streams, j->when[x->graph[k].typical].batch);
		if (turns < 2 || !graph_comes_in_turns(j, k, turns))
			continue;
		uint32_t *turn = NEW_ARRAY_RAW(launches, uint32_t);
		for (uint32_t i = 0; i < launches; i++)
			turn[i] = i % turns;
		graphs_divide(x, k, turn, turns, true);
		mem_free(turn);
	}
}

/* The number of a batch in known[]; a new batch is appended. */
static uint32_t graph_class_of(int64_t *known, uint32_t *n, int64_t batch)
{
	uint32_t i = 0;
	while (i < *n && known[i] != batch)
		i++;
	if (i == *n)
		known[(*n)++] = batch;
	return i;
}

/* Graphs of different batches may run kernels of the same names. Launches whose steps pad to different captures belong to different graphs. */
static void graph_tell_batches(struct graph_join *j)
{
	enum { BATCHES_MOST = 256 }; /* servers capture some dozens; with more, the graph stays undivided */
	struct graphs *x = j->graphs;
	for (uint32_t k = 0, n = x->n_graphs; k < n; k++) {
		uint32_t *of = NEW_ARRAY_RAW(x->graph[k].launches, uint32_t), classes = 0, launch = 0;
		int64_t known[BATCHES_MOST + 1];
		for (uint32_t i = x->graph[k].first; i != ROW_NONE && classes <= BATCHES_MOST; i = x->launch[i].next)
			of[launch++] = graph_class_of(known, &classes, graph_padded_batch(j->captures, j->when[i].batch));
		if (classes > 1 && classes <= BATCHES_MOST && x->graph[k].id == ID_NONE && !x->graph[k].odd)
			graphs_divide(x, k, of, classes, false);
		mem_free(of);
	}
}

/* Copies what is known of the graph `whole`: piece i is its piece part[i]. */
static void graph_match_part(struct graph_match *m, const struct graph_match *whole, const uint32_t *part, uint32_t n)
{
	*m = (struct graph_match){.capture = whole->capture, .evidence = NEW_ARRAY_RAW(n, uint8_t), .call = NEW_ARRAY_RAW(n, uint32_t), .ops_alone = whole->ops_alone};
	for (uint32_t i = 0; i < n; i++) {
		m->evidence[i] = whole->evidence[part[i]];
		m->call[i] = whole->call[part[i]];
	}
}

/* Matches a graph by the ids of its nodes, else by a capture, else by a recording in which the same work ran without graphs. A part takes what is known of the
 * whole graph, which stands before it. */
static void graph_join_one(const struct graph_join *j, struct graph_match *match, uint32_t graph)
{
	const struct graph *g = &j->graphs->graph[graph];
	const struct graph_launch *l = &j->graphs->launch[g->typical];
	struct graph_match *m = &match[graph];
	if (g->is_part) {
		graph_match_part(m, &match[g->whole], l->part, l->work.n);
		return;
	}
	if (j->nodes && graph_nodes_match(j->nodes, j->p, &l->work, m))
		return;
	graph_match_find(m, j->captures, j->p, &l->work, j->when[g->typical].batch, g);
	for (unsigned i = 0; i < j->others && !m->capture && g->streams == 1; i++) {
		struct graph_match eager;
		if (!graph_eager_match(j->eager[i], j->p, &l->work, &eager))
			continue;
		graph_match_release(m);
		*m = eager;
		m->capture = &m->own;
	}
}

static bool graph_tells(const struct graph_match *m, uint32_t n)
{
	return m->capture && ANY_WHERE(i, 0u, n, m->call[i] != ROW_NONE);
}

static bool graph_fits(const struct graph_match *m, uint32_t n)
{
	return ANY_WHERE(i, 0u, n, m->evidence[i] == EVIDENCE_AMBIGUOUS);
}

static struct str graph_piece_name(const struct profile *p, const struct graph_sequence *s, uint32_t i, bool replayed)
{
	struct str name = STR("");
	if (i >= s->n)
		return name;
	if (s->kind[i] != GPU_KERNEL)
		return s->kind[i] == GPU_MEMCPY ? STR("copy") : STR("set");
	if (replayed)
		return profile_str(p, p->gpu_op.name[s->row[i]]);
	(void)profile_arg(p, p->span.args[s->row[i]], ARG_LAUNCHED_KERNEL, &name);
	return name;
}

/* Which capture has most of the work's beginning, and where it differs. */
static void graph_find_nearest(const struct profile *p, const struct graph_sequence *work, const struct graph_captures *captures, struct graph_tried *tried)
{
	for (uint32_t i = 0; i < captures->n; i++) {
		const struct graph_sequence *calls = &captures->v[i].work;
		uint32_t n = 0;
		while (n < work->n && n < calls->n && work->key[n] == calls->key[n])
			n++;
		if (!calls->named || n < tried->differs)
			continue;
		tried->differs = n + 1;
		tried->replayed = graph_piece_name(p, work, n, true);
		tried->captured = graph_piece_name(captures->v[i].p, calls, n, false);
	}
}

static void graph_sum_up(const struct graph_join *j, const struct graph_match *match, const struct graph_captures *captures, struct graph_tried *tried)
{
	const struct graphs *x = j->graphs;
	const struct graph *longest = NULL;
	tried->graphs = x->n_graphs;
	for (uint32_t i = 0; i < captures->n; i++)
		tried->captures += captures->v[i].p != j->p;
	for (uint32_t i = 0; i < x->n_graphs; i++) {
		const uint32_t n = x->launch[x->graph[i].typical].work.n;
		const bool tells = graph_tells(&match[i], n), fits = tells || graph_fits(&match[i], n);
		tried->told += tells && match[i].capture->p != j->p;
		tried->ambiguous += fits && !tells;
		tried->untold += !fits;
		if (!fits && (!longest || n > x->launch[longest->typical].work.n))
			longest = &x->graph[i];
	}
	if (longest && longest->streams == 1)
		graph_find_nearest(j->p, &x->launch[longest->typical].work, captures, tried);
}

static void graph_join_all(struct graph_join *j, const struct graph_captures *captures, struct graph_tried *tried)
{
	const struct graphs *x = j->graphs;
	graph_tell_batches(j);
	graph_tell_turns(j);
	graphs_divide_parts(j->graphs);
	struct graph_match *match = NEW_ARRAY(x->n_graphs, struct graph_match);
	for (uint32_t i = 0; i < x->n_graphs; i++)
		graph_join_one(j, match, i);
	graph_sum_up(j, match, captures, tried);
	const uint32_t without = graph_replay_add(j->p, x, match);
	graph_note(j->p, x, match, without);
	for (uint32_t i = 0; i < x->n_graphs; i++)
		graph_match_release(&match[i]);
	mem_free(match);
}

static void graph_join_with(struct profile *p, struct graphs *x, struct profile *const *others, unsigned n, struct graph_tried *tried)
{
	struct graph_captures captures = {0};
	struct graph_join j = {.p = p, .graphs = x, .when = graph_find_when(p, x), .nodes = graph_nodes_new(p), .eager = NEW_ARRAY(n, struct graph_eager *), .others = n};
	graph_captures_add(&captures, p);
	for (unsigned i = 0; i < n; i++) {
		if (others[i] != p)
			graph_captures_add(&captures, others[i]);
		j.eager[i] = graph_eager_new(others[i]);
	}
	j.captures = graph_index_new(&captures);
	graph_join_all(&j, &captures, tried);
	for (unsigned i = 0; i < n; i++)
		graph_eager_free(j.eager[i]);
	mem_free(j.eager);
	graph_nodes_free(j.nodes);
	graph_index_free(j.captures);
	graph_captures_release(&captures);
	mem_free(j.when);
}

int graph_join(struct profile *p, struct profile *const *others, unsigned n, struct graph_tried *tried, struct err *e)
{
	const struct user_rules *rules = p->user_rules;
	*tried = (struct graph_tried){0};
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (analysis_run(others[i], PASS_NEST | PASS_CORRELATE, e) < 0)
			return -1;
	struct graphs *x = graphs_new(p);
	if (x->n)
		graph_join_with(p, x, others, n, tried);
	graphs_free(x);
	analysis_forget(p);
	p->user_rules = rules;
	return 0;
}
