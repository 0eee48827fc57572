/* Finds the ranges around launches in one sweep over all spans, with a stack of the thread's open ranges. The chain of a launch is the stack as it stands,
 * kept as a node of a tree. A range gets a node when a launch is first found in it, so that there are no more nodes than ranges with launches. */
#include "predecessors/pyprof/chain.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/sort.h"

struct open_range {
	int64_t start, end;
	uint32_t span, node; /* ROW_NONE: no node yet */
};

/* Each of the first `nested` ranges lies in the one before, and so does its node. The others overlap; their node is the one they had last. */
struct pyprof_chain_stack {
	struct open_range *v;
	uint32_t n, cap, nested;
};

static uint32_t new_node(struct pyprof_records *r, uint32_t span, uint32_t outer)
{
	uint32_t depth = outer == ROW_NONE ? 0 : r->node[outer].depth + 1;
	MEM_PUSH(r->node, r->n_nodes, r->cap_nodes, (struct pyprof_node){span, outer, depth});
	return r->n_nodes - 1;
}

static bool encloses(const struct open_range *o, int64_t start, int64_t end, bool strict)
{
	return strict ? o->start < start && o->end > end : o->start <= start && o->end >= end;
}

/* How many of the first `nested` enclose the interval: the outer ones do, the inner ones do not. */
static uint32_t chain_around(const struct pyprof_chain_stack *s, int64_t start, int64_t end, bool strict)
{
	uint32_t low = 0, high = s->nested;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (encloses(&s->v[middle], start, end, strict))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Takes away ranges that have ended. The ranges above one that goes lose their nodes, since their chains are others now. */
static void close_ended(struct pyprof_chain_stack *s, int64_t now)
{
	while (s->n && s->v[s->n - 1].end <= now)
		s->n--;
	if (s->nested >= s->n) {
		s->nested = s->n;
		return;
	}
	uint32_t kept = chain_around(s, now, now + 1, false), i = s->nested;
	for (s->nested = kept; i < s->n; i++) {
		if (s->v[i].end <= now)
			continue;
		if (kept != i)
			s->v[i].node = ROW_NONE;
		s->v[kept++] = s->v[i];
	}
	s->n = kept;
	while (s->nested < s->n && (!s->nested || s->v[s->nested].end <= s->v[s->nested - 1].end))
		s->nested++;
}

static void pyprof_chain_open_one(struct pyprof_records *r, struct pyprof_chain_stack *s, const struct spans *t, uint32_t i)
{
	int64_t end = t->start_ns[i] + t->dur_ns[i];
	if (s->nested == s->n && (!s->n || end <= s->v[s->n - 1].end)) {
		s->nested++;
	} else if (s->n - s->nested >= PYPROF_OVERLAP_MAX) {
		r->overlapping++;
		return;
	}
	MEM_PUSH(s->v, s->n, s->cap, (struct open_range){t->start_ns[i], end, i, ROW_NONE});
}

/* The node of a launch: its chain is the nested ranges that enclose it, then the overlapping ones that do. */
static uint32_t chain_now(struct pyprof_records *r, struct pyprof_chain_stack *s, int64_t start, int64_t end, bool strict)
{
	uint32_t n = chain_around(s, start, end, strict), first = n;
	while (first && s->v[first - 1].node == ROW_NONE)
		first--;
	for (uint32_t i = first; i < n; i++)
		s->v[i].node = new_node(r, s->v[i].span, i ? s->v[i - 1].node : ROW_NONE);
	uint32_t chain = n ? s->v[n - 1].node : ROW_NONE;
	for (uint32_t i = s->nested; i < s->n; i++) {
		struct open_range *o = &s->v[i];
		if (!encloses(o, start, end, strict))
			continue;
		if (o->node == ROW_NONE || r->node[o->node].outer != chain)
			o->node = new_node(r, o->span, chain);
		chain = o->node;
	}
	return chain;
}

static bool pyprof_chain_is_range(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_USER || kind == SPAN_MARKER;
}

/* Records by the row of the call that launched them. */
static struct sort_item *by_call(const struct pyprof_records *r, uint32_t *n)
{
	struct sort_item *v = NEW_ARRAY_RAW(r->n, struct sort_item);
	*n = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t call = r->p->gpu_op.call[r->gpu[i]];
		if (call != ROW_NONE)
			v[(*n)++] = (struct sort_item){.key = call, .row = i};
	}
	sort_items(v, *n);
	return v;
}

void pyprof_chains(struct pyprof_records *r)
{
	const struct spans *t = &r->p->span;
	bool strict = r->rules != PYPROF_RECORDS_DEFAULT;
	struct pyprof_chain_stack s = {0};
	uint32_t n, at = 0;
	struct sort_item *launch = by_call(r, &n);
	memset(r->chain, 0xff, r->n * sizeof *r->chain);
	for (uint32_t i = 0; i < t->rows.n && at < n; i++) {
		if (i && t->track[i] != t->track[i - 1])
			s.n = s.nested = 0;
		if (launch[at].key == i) {
			close_ended(&s, t->start_ns[i]);
			uint32_t chain = chain_now(r, &s, t->start_ns[i], span_end(r->p, i), strict);
			for (; at < n && launch[at].key == i; at++)
				r->chain[launch[at].row] = chain;
		} else if (pyprof_chain_is_range(t->kind[i])) {
			close_ended(&s, t->start_ns[i]);
			pyprof_chain_open_one(r, &s, t, i);
		}
	}
	mem_free(s.v);
	mem_free(launch);
}

void pyprof_split_ids(enum pyprof_record_rules rules, const int64_t *id, unsigned n, int64_t stays, int64_t *seq, unsigned *n_seq,
                      int64_t *alt, unsigned *n_alt)
{
	bool skip = false;
	*n_seq = *n_alt = 0;
	for (unsigned i = 0; i < n; i++) {
		if (id[i] == stays || skip) {
			seq[(*n_seq)++] = id[i];
			skip = false;
		} else {
			alt[(*n_alt)++] = id[i];
			skip = rules != PYPROF_RECORDS_DEFAULT; /* the one behind a removed one is not looked at */
		}
	}
}
