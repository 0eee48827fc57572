/* What is only known when all of a segment was read, since chunks of other threads may come later: the thread of an allocation, the stream of
 * an event that was waited for, the range in which a node of a CUDA graph was made. */
#include "base/search.h"
#include "base/sort.h"
#include "input/capture/capture.h"

#include <stdio.h>
#include <stdlib.h>

/* The pair, then those of the set. */
static uint32_t with_arg(struct capture *c, struct arg_pair first, uint32_t set)
{
	enum { MOST = 8 };
	const struct profile *p = c->p;
	struct arg_pair pair[MOST] = {first};
	unsigned n = 1;
	uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	for (uint32_t i = set ? p->arg_set.first[set] : end; i < end && n < MOST; i++)
		pair[n++] = (struct arg_pair){p->arg.key[i], p->arg.value[i], p->arg.is_string[i]};
	return build_args(&c->b, pair, n);
}

/* A replay is launched by another range than the one that captured the work. */
static void match_nodes(struct capture *c)
{
	struct gpu_ops *g = &c->p->gpu_op;
	uint32_t key_name = intern_str(&c->p->strings, STR("Captured in"));
	for (uint32_t i = c->first_gpu; i < g->rows.n; i++) {
		int64_t node = g->launch[i] == ROW_NONE ? ID_NONE : c->p->launch.graph_node_id[g->launch[i]];
		uint64_t key[2] = {(uint32_t)c->file->h.pid, (uint64_t)node};
		uint32_t at = node == ID_NONE ? INTERN_NONE : intern_find(&c->graph_nodes, (struct str){(const char *)key, sizeof key});
		if (at != INTERN_NONE && c->node_range[at])
			g->args[i] = with_arg(c, (struct arg_pair){key_name, c->node_range[at], 1}, g->args[i]);
	}
}

/* The calls with the correlation ids of allocations and events: id -> row of span; ROW_NONE - 1 = not there. */
static void capture_match_find_calls(struct capture *c, struct idmap *call)
{
	const struct spans *s = &c->p->span;
	idmap_init(call, 1, 0, (uint64_t)c->n_allocations + c->n_events);
	for (uint32_t i = 0; i < c->n_allocations; i++)
		idmap_put(call, c->allocation[i].correlation, ROW_NONE - 1);
	for (uint32_t i = 0; i < c->n_events; i++)
		idmap_put(call, c->event[i].correlation, ROW_NONE - 1);
	for (uint32_t i = c->first_span; i < s->rows.n; i++)
		if (s->kind[i] == SPAN_CALL && s->link_id[i] != ID_NONE && idmap_get(call, s->link_id[i]) != IDMAP_NONE)
			idmap_put(call, s->link_id[i], i);
}

static int by_event(const void *x, const void *y)
{
	const struct capture_event *a = x, *b = y;
	return COMPARE(a->context, b->context) ?: COMPARE(a->event, b->event) ?: COMPARE(a->time_ns, b->time_ns) ?: COMPARE(a->correlation, b->correlation);
}

/* How the event stood when the wait began: it may be recorded again and again, on whatever stream. NULL = its recording was not seen. */
static const struct capture_event *capture_match_last_before(const struct capture *c, const struct capture_wait *w)
{
	const struct capture_event wanted = {w->context, w->event, 0, UINT32_MAX, c->p->span.start_ns[w->row]};
	uint32_t low = FIRST_WHERE(i, 0, c->n_events, by_event(&c->event[i], &wanted) > 0);
	const struct capture_event *e = low ? &c->event[low - 1] : NULL;
	return e && e->context == w->context && e->event == w->event ? e : NULL;
}

static struct arg_pair capture_match_number(struct capture *c, const char *key, uint32_t v)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%u", v);
	return (struct arg_pair){intern_str(&c->p->strings, str_from(key)), intern_put(&c->p->strings, text, (size_t)n), 0};
}

/* Under the names that Kineto has for the same. */
static void match_waits(struct capture *c, const struct idmap *call)
{
	for (uint32_t i = 0; i < c->n_events; i++) {
		uint32_t at = idmap_get(call, c->event[i].correlation);
		if (at < c->p->span.rows.n)
			c->event[i].time_ns = c->p->span.start_ns[at];
	}
	qsort(c->event, c->n_events, sizeof *c->event, by_event);
	for (uint32_t i = 0; i < c->n_waits; i++) {
		const struct capture_event *e = capture_match_last_before(c, &c->wait[i]);
		if (!e)
			continue;
		struct arg_pair pair[] = {capture_match_number(c, arg_key_text[ARG_WAIT_ON_STREAM], e->stream), capture_match_number(c, "wait_on_cuda_event_record_corr_id", e->correlation),
		                          capture_match_number(c, "wait_on_cuda_event_id", e->event)};
		c->p->span.args[c->wait[i].row] = build_args(&c->b, pair, 3);
	}
}

/* CUPTI tells the call that allocated, not its thread. */
static void match_allocations(struct capture *c, const struct idmap *call)
{
	for (uint32_t i = 0; i < c->n_allocations; i++) {
		uint32_t at = idmap_get(call, c->allocation[i].correlation);
		if (at < c->p->span.rows.n)
			c->p->memory.track[c->allocation[i].row] = c->p->span.track[at];
	}
}

void capture_match_gpu(struct capture *c)
{
	struct idmap call;
	if (c->graph_nodes.n)
		match_nodes(c);
	if (!c->n_allocations && !c->n_events)
		return;
	capture_match_find_calls(c, &call);
	match_allocations(c, &call);
	if (c->n_events)
		match_waits(c, &call);
	idmap_release(&call);
}
