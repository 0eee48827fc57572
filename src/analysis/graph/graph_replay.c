#include "analysis/graph/graph_replay.h"

#include "analysis/analysis.h"
#include "analysis/tree/expert_ops.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "op/cost.h"

#include <assert.h>
#include <stdlib.h>

/* A range of a capture, as it is copied to each launch. */
struct graph_copy {
	uint32_t row;            /* of span of the capture's recording */
	uint32_t begin, end;     /* ordinals, which become ns after the launch */
};

/* The ranges to be copied to each launch of a graph, by row: thread after thread of the capture. */
struct graph_template {
	struct graph_copy *copy;
	uint32_t n;
	uint32_t *first;         /* by thread: its first copy; one more at the end */
	uint32_t threads;
	uint32_t ordinals;       /* how many ns the copies take */
	uint32_t *op_of_piece;   /* by piece: copy of its op; ROW_NONE = not known */
};

struct graph_replay {
	struct profile *p;
	const struct graphs *graphs;
	const struct graph_match *match;
	struct graph_template *of_graph; /* by graph */
	struct graph_from {      /* a recording that has captures */
		const struct profile *p;
		uint32_t *string, *args; /* its string id, or argument set: that of r->p; 0 = not yet asked for. NULL: it is r->p itself */
		uint32_t *place; /* by span: copy in the template that is being made; ROW_NONE = none */
	} *known, *from;         /* from: the one that is read now, of `known` */
	uint32_t n_known, cap_known;
	int64_t next_ext_id;
	uint16_t cat;
	int64_t *first_ext_id;   /* by launch: external id of its first copy; ID_NONE = it has no copies */
	int64_t *base_ns;        /* by launch: when its copies begin */
};

/* ---- what is copied ---- */

static bool graph_is_frame(const struct profile *p, uint32_t i)
{
	return p->span.kind[i] == SPAN_PYTHON && !str_starts(profile_str(p, p->span.name[i]), STR("nn.Module: "));
}

/* Whether a range around a captured call is copied. */
static bool graph_is_copied(const struct graph_match *m, uint32_t row, bool frames)
{
	const struct profile *p = m->capture->p;
	if (m->ops_alone)
		return p->span.kind[row] == SPAN_OP;
	return p->span.kind[row] != SPAN_CALL && (frames || !graph_is_frame(p, row)) && (m->capture->begin != ROW_NONE || p->span.kind[row] == SPAN_OP || graph_is_module(p, row));
}

/* Adds a range and those around it, as far as they began in the capture. */
static void graph_collect(struct graph_template *t, const struct graph_match *m, uint32_t row, bool frames, uint32_t *place, uint32_t *cap)
{
	const struct graph_capture *c = m->capture;
	const int64_t from_ns = c->begin != ROW_NONE ? c->p->span.start_ns[c->begin] : INT64_MIN;
	for (; row != ROW_NONE && place[row] == ROW_NONE && c->p->span.start_ns[row] >= from_ns; row = c->p->span.parent[row])
		if (graph_is_copied(m, row, frames)) {
			place[row] = t->n;
			MEM_PUSH(t->copy, t->n, *cap, ((struct graph_copy){.row = row}));
		}
}

/* Adds ops that launch nothing and state what the arguments of a copied op do not (op/cost.h, COST_ASKS_INNER). */
static void graph_collect_inner(struct graph_template *t, const struct graph_match *m, bool frames, uint32_t *place, uint32_t *cap)
{
	const struct profile *p = m->capture->p;
	for (uint32_t i = 0; i < t->n; i++) {
		const uint32_t row = t->copy[i].row;
		if (p->span.kind[row] != SPAN_OP || cost_asks(profile_str(p, p->span.name[row]), &cost_own, COST_FORWARD, NULL) != COST_ASKS_INNER)
			continue;
		const struct expert_ops inner = expert_ops_in(p, row);
		graph_collect(t, m, inner.routing, frames, place, cap);
		graph_collect(t, m, inner.up, frames, place, cap);
		graph_collect(t, m, inner.down, frames, place, cap);
	}
}

/* Numbers the begins and ends so that copies nest as the ranges do. */
static void graph_number(struct graph_template *t, const struct profile *p, const uint32_t *place)
{
	uint32_t *open = NEW_ARRAY_RAW(t->n, uint32_t), depth = 0, at = 0;
	for (uint32_t i = 0; i <= t->n; i++) {
		uint32_t around = i < t->n ? p->span.parent[t->copy[i].row] : ROW_NONE;
		while (around != ROW_NONE && place[around] == ROW_NONE)
			around = p->span.parent[around];
		while (depth && (around == ROW_NONE || open[depth - 1] != place[around]))
			t->copy[open[--depth]].end = at++;
		if (i == t->n)
			break;
		t->copy[i].begin = at++;
		open[depth++] = i;
	}
	t->ordinals = at;
	mem_free(open);
}

static void graph_divide_by_thread(struct graph_template *t, const struct profile *p)
{
	uint32_t cap = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (i == 0 || p->span.track[t->copy[i].row] != p->span.track[t->copy[i - 1].row])
			MEM_PUSH(t->first, t->threads, cap, i);
	MEM_GROW(t->first, cap, t->threads + 1);
	t->first[t->threads] = t->n;
}

static int graph_by_row(const void *a, const void *b)
{
	return COMPARE(((const struct graph_copy *)a)->row, ((const struct graph_copy *)b)->row);
}

/* `place`: of spans of the capture's recording, all ROW_NONE; left so. */
static void graph_template_fill(struct graph_template *t, const struct graph_match *m, uint32_t n_work, bool frames, uint32_t *place)
{
	const struct graph_capture *c = m->capture;
	const struct profile *p = c->p;
	uint32_t cap = 0;
	for (uint32_t i = 0; i < n_work; i++)
		if (m->call[i] != ROW_NONE) {
			const uint32_t call = c->work.row[m->call[i]];
			graph_collect(t, m, call, frames, place, &cap);
			graph_collect(t, m, graph_op_of(p, call), frames, place, &cap);
		}
	graph_collect_inner(t, m, frames, place, &cap);
	if (t->n)
		qsort(t->copy, t->n, sizeof *t->copy, graph_by_row);
	for (uint32_t i = 0; i < t->n; i++)
		place[t->copy[i].row] = i;
	graph_number(t, p, place);
	graph_divide_by_thread(t, p);
	t->op_of_piece = NEW_ARRAY_RAW(n_work, uint32_t);
	for (uint32_t i = 0; i < n_work; i++)
		t->op_of_piece[i] = m->call[i] == ROW_NONE ? ROW_NONE : place[graph_op_of(p, c->work.row[m->call[i]])];
	for (uint32_t i = 0; i < t->n; i++)
		place[t->copy[i].row] = ROW_NONE;
}

static void graph_template_release(struct graph_template *t)
{
	mem_free(t->copy);
	mem_free(t->first);
	mem_free(t->op_of_piece);
}

/* Sets r->from, with the maps of what this recording calls by number. */
static void graph_read_from(struct graph_replay *r, const struct profile *from)
{
	if (r->from && r->from->p == from)
		return;
	r->from = ELEMENT_WHERE(i, r->known, r->n_known, r->known[i].p == from);
	if (r->from)
		return;
	struct graph_from x = {.p = from, .place = mem_filled(from->span.rows.n, ROW_NONE)};
	if (from != r->p) {
		x.string = NEW_ARRAY(from->strings.n, uint32_t);
		x.args = NEW_ARRAY(from->arg_set.rows.n, uint32_t);
	}
	MEM_PUSH(r->known, r->n_known, r->cap_known, x);
	r->from = &r->known[r->n_known - 1];
}

static void graph_make_templates(struct graph_replay *r, bool frames)
{
	const struct graphs *x = r->graphs;
	for (uint32_t i = 0; i < x->n_graphs; i++) {
		if (!r->match[i].capture)
			continue;
		graph_read_from(r, r->match[i].capture->p);
		graph_template_fill(&r->of_graph[i], &r->match[i], x->launch[x->graph[i].typical].work.n, frames, r->from->place);
	}
}

static bool graph_has_template(const struct graph_replay *r, const struct graph_launch *l)
{
	return r->of_graph[l->graph].n && graph_is_typical(r->graphs, l);
}

static uint64_t graph_count_copies(const struct graph_replay *r)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < r->graphs->n; i++)
		n += graph_has_template(r, &r->graphs->launch[i]) ? r->of_graph[r->graphs->launch[i].graph].n : 0;
	return n;
}

/* ---- rows ---- */

static uint32_t graph_string(struct graph_replay *r, const struct profile *from, uint32_t id)
{
	if (from == r->p || id == 0)
		return id;
	if (!r->from->string[id])
		r->from->string[id] = intern_str(&r->p->strings, profile_str(from, id));
	return r->from->string[id];
}

static uint32_t graph_args(struct graph_replay *r, const struct profile *from, uint32_t set)
{
	struct profile *p = r->p;
	if (from == p || set == 0)
		return set;
	if (r->from->args[set])
		return r->from->args[set];
	const uint32_t to = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]), end = set + 1 < from->arg_set.rows.n ? from->arg_set.first[set + 1] : from->arg.rows.n;
	if (to == ROW_NONE)
		return 0;
	p->arg_set.first[to] = p->arg.rows.n;
	for (uint32_t i = from->arg_set.first[set]; i < end; i++) {
		const uint32_t a = rows_push(&p->arg, &store_tables[TABLE_arg]);
		if (a == ROW_NONE)
			break;
		p->arg.key[a] = graph_string(r, from, from->arg.key[i]);
		p->arg.value[a] = graph_string(r, from, from->arg.value[i]);
		p->arg.is_string[a] = from->arg.is_string[i];
	}
	return r->from->args[set] = to;
}

/* Sequence numbers pair forward and backward ops. Each launch gets numbers of its own, so that ops of different launches are not paired. */
static int64_t graph_sequence_number(int64_t number, uint32_t launch)
{
	enum { BITS = 31 };
	return number >= 0 && number < (int64_t)1 << BITS ? number + (((int64_t)launch + 1) << BITS) : ID_NONE;
}

static void graph_add_span(struct graph_replay *r, const struct graph_copy *c, uint32_t launch, int64_t ext_id, uint32_t track)
{
	struct profile *p = r->p;
	const struct profile *from = r->from->p;
	const bool frame = from->span.kind[c->row] == SPAN_PYTHON;
	const uint32_t name = graph_string(r, from, from->span.name[c->row]), args = graph_args(r, from, from->span.args[c->row]), i = rows_push(&p->span, &store_tables[TABLE_span]);
	assert(i != ROW_NONE);
	p->span.start_ns[i] = r->base_ns[launch] + c->begin;
	p->span.dur_ns[i] = c->end - c->begin;
	p->span.ext_id[i] = ext_id;
	p->span.link_id[i] = frame ? ID_NONE : graph_sequence_number(from->span.link_id[c->row], launch);
	if (p->span.aux_id)
		p->span.aux_id[i] = span_aux_id(&from->span, c->row);
	if (p->span.op_id) /* those of the capture name its own ops */
		p->span.op_id[i] = 0;
	if (p->span.input_ops)
		p->span.input_ops[i] = 0;
	p->span.name[i] = name;
	p->span.track[i] = track;
	p->span.args[i] = args;
	p->span.cat[i] = r->cat;
	p->span.kind[i] = from->span.kind[c->row];
	if (p->span.rows.place)
		p->span.rows.place[i] = ROW_NONE;
}

/* A track for the copies of thread k of captures that are launched by this thread. */
static uint32_t graph_add_track(struct profile *p, uint32_t launching, uint32_t k)
{
	const uint32_t t = rows_push(&p->track, &store_tables[TABLE_track]);
	struct buf name = {0};
	if (t == ROW_NONE)
		return t;
	buf_cstr(&name, "graph replays ");
	if (k)
		buf_printf(&name, "%u ", k + 1);
	buf_printf(&name, "of " STR_FMT, STR_ARG(profile_str(p, p->track.tid_text[launching])));
	p->track.pid[t] = p->track.pid[launching];
	p->track.tid[t] = ID_NONE;
	p->track.pid_text[t] = p->track.pid_text[launching];
	p->track.tid_text[t] = intern_str(&p->strings, buf_view(&name));
	p->track.process_name[t] = p->track.process_name[launching];
	p->track.process_labels[t] = p->track.process_labels[launching];
	p->track.thread_name[t] = p->track.tid_text[t];
	buf_release(&name);
	return t;
}

static void graph_add_copies(struct graph_replay *r, uint32_t launch, uint32_t k, uint32_t track)
{
	const struct graph_launch *l = &r->graphs->launch[launch];
	const struct graph_template *t = &r->of_graph[l->graph];
	graph_read_from(r, r->match[l->graph].capture->p);
	for (uint32_t i = t->first[k]; i < t->first[k + 1]; i++)
		graph_add_span(r, &t->copy[i], launch, r->first_ext_id[launch] + i, track);
}

/* Launches are in order of thread and time, and new tracks are behind all others, so that the table stays sorted. */
static void graph_add_threads(struct graph_replay *r)
{
	const struct graphs *x = r->graphs;
	struct profile *p = r->p;
	for (uint32_t i = 0, next; i < x->n; i = next) {
		const uint32_t launching = p->span.track[x->launch[i].call];
		uint32_t threads = 0;
		for (next = i; next < x->n && p->span.track[x->launch[next].call] == launching; next++)
			if (r->first_ext_id[next] != ID_NONE && r->of_graph[x->launch[next].graph].threads > threads)
				threads = r->of_graph[x->launch[next].graph].threads;
		for (uint32_t k = 0; k < threads; k++) {
			const uint32_t track = graph_add_track(p, launching, k);
			for (uint32_t l = i; l < next && track != ROW_NONE; l++)
				if (r->first_ext_id[l] != ID_NONE && k < r->of_graph[x->launch[l].graph].threads)
					graph_add_copies(r, l, k, track);
		}
	}
}

/* ---- the whole ---- */

static int64_t graph_next_ext_id(const struct profile *p)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		most = span_ext_id(&p->span, i) > most ? span_ext_id(&p->span, i) : most;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		most = gpu_ext_id(&p->gpu_op, i) > most ? gpu_ext_id(&p->gpu_op, i) : most;
	return most < INT64_MAX ? most + 1 : most;
}

/* Decides which launches get copies, with which ids, and when the copies begin: not before those of the launch before end. Returns how many launches get none
 * because of GRAPH_MOST_COPIES. */
static uint32_t graph_plan(struct graph_replay *r)
{
	const struct graphs *x = r->graphs;
	const uint64_t room = ROW_NONE - 1 - (uint64_t)r->p->span.rows.n;
	uint64_t left = room < GRAPH_MOST_COPIES ? room : GRAPH_MOST_COPIES;
	uint32_t without = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct graph_launch *l = &x->launch[i];
		const struct graph_template *t = &r->of_graph[l->graph];
		const bool follows = i && r->p->span.track[x->launch[i - 1].call] == r->p->span.track[l->call];
		r->first_ext_id[i] = ID_NONE;
		r->base_ns[i] = r->p->span.start_ns[l->call];
		if (follows && r->first_ext_id[i - 1] != ID_NONE) {
			const int64_t free_ns = r->base_ns[i - 1] + r->of_graph[x->launch[i - 1].graph].ordinals;
			r->base_ns[i] = r->base_ns[i] > free_ns ? r->base_ns[i] : free_ns;
		}
		if (!graph_has_template(r, l))
			continue;
		if (t->n > left || r->next_ext_id > INT64_MAX - t->n) {
			without++;
			continue;
		}
		left -= t->n;
		r->first_ext_id[i] = r->next_ext_id;
		r->next_ext_id += t->n;
	}
	return without;
}

static void graph_set_work(struct graph_replay *r)
{
	const struct graphs *x = r->graphs;
	struct gpu_ops *g = &r->p->gpu_op;
	if (!g->ext_id)
		g->ext_id = rows_materialize(g, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, ext_id));
	if (!g->evidence)
		g->evidence = rows_materialize(g, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, evidence));
	for (uint32_t i = 0; i < x->n; i++) {
		const struct graph_launch *l = &x->launch[i];
		const struct graph_match *m = &r->match[l->graph];
		for (uint32_t k = 0; k < l->work.n; k++) {
			const bool told = r->first_ext_id[i] != ID_NONE && r->of_graph[l->graph].op_of_piece[k] != ROW_NONE;
			const bool doubt = m->evidence[k] == EVIDENCE_AMBIGUOUS && graph_is_typical(x, l);
			g->evidence[l->work.row[k]] = told ? m->evidence[k] : doubt ? EVIDENCE_AMBIGUOUS : EVIDENCE_UNKNOWN;
			if (told)
				g->ext_id[l->work.row[k]] = r->first_ext_id[i] + r->of_graph[l->graph].op_of_piece[k];
		}
	}
}

static uint16_t graph_add_category(struct profile *p)
{
	const uint32_t i = p->cat.rows.n < UINT16_MAX ? rows_push(&p->cat, &store_tables[TABLE_cat]) : p->cat.rows.n - 1;
	if (i + 1 == p->cat.rows.n) {
		p->cat.name[i] = intern_str(&p->strings, STR(REPLAY_CATEGORY));
		p->cat.events[i] = 0;
	}
	return (uint16_t)i;
}

uint32_t graph_replay_add(struct profile *p, const struct graphs *graphs, const struct graph_match *match)
{
	struct graph_replay r = {.p = p, .graphs = graphs, .match = match, .of_graph = NEW_ARRAY(graphs->n_graphs, struct graph_template), .next_ext_id = graph_next_ext_id(p)};
	graph_make_templates(&r, true);
	if (graph_count_copies(&r) > GRAPH_MOST_COPIES) {
		for (uint32_t i = 0; i < graphs->n_graphs; i++)
			graph_template_release(&r.of_graph[i]);
		memset(r.of_graph, 0, graphs->n_graphs * sizeof *r.of_graph);
		graph_make_templates(&r, false);
	}
	r.first_ext_id = NEW_ARRAY(graphs->n, int64_t);
	r.base_ns = NEW_ARRAY(graphs->n, int64_t);
	const uint32_t without = graph_plan(&r);
	if (graph_count_copies(&r)) {
		r.cat = graph_add_category(p);
		if (!p->span.ext_id)
			p->span.ext_id = rows_materialize(&p->span, &store_tables[TABLE_span], offsetof(struct spans, ext_id));
		if (!p->span.aux_id)
			p->span.aux_id = rows_materialize(&p->span, &store_tables[TABLE_span], offsetof(struct spans, aux_id));
		graph_add_threads(&r);
	}
	graph_set_work(&r);
	for (uint32_t i = 0; i < graphs->n_graphs; i++)
		graph_template_release(&r.of_graph[i]);
	mem_free(r.of_graph);
	mem_free(r.first_ext_id);
	mem_free(r.base_ns);
	for (uint32_t i = 0; i < r.n_known; i++) {
		mem_free(r.known[i].string);
		mem_free(r.known[i].args);
		mem_free(r.known[i].place);
	}
	mem_free(r.known);
	return without;
}
