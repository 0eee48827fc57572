#include "predecessors/pyprof/path.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>

enum { PYPROF_PATH_SEEN_LEAST = 64 }; /* slots; a power of two */

static void path_list(struct pyprof_path *x, struct pyprof_level *level, enum pyprof_list which, uint32_t span)
{
	struct pyprof_spans *s = &x->list[which];
	MEM_PUSH(s->v, s->n, s->cap, span);
	level->lists |= (uint8_t)(1u << which);
}

/* The slot of `span` in `seen`, or the free one that it would take. */
static uint32_t path_slot(const struct pyprof_path *x, const struct spans *t, uint32_t span)
{
	uint32_t mask = x->n_seen - 1, i = (uint32_t)hash_u64((uint64_t)t->link_id[span] * 31 + t->name[span]) & mask;
	for (; x->seen[i] != ROW_NONE; i = (i + 1) & mask) {
		uint32_t other = x->seq[x->seen[i]].span;
		if (t->name[other] == t->name[span] && t->link_id[other] == t->link_id[span])
			break;
	}
	return i;
}

static void path_grow_seen(struct pyprof_path *x, const struct spans *t)
{
	if (2 * (x->n_seq + 1) <= x->n_seen)
		return;
	mem_free(x->seen);
	x->n_seen = x->n_seen ? 2 * x->n_seen : PYPROF_PATH_SEEN_LEAST;
	x->seen = NEW_ARRAY_RAW(x->n_seen, uint32_t);
	memset(x->seen, 0xff, x->n_seen * sizeof *x->seen);
	for (uint32_t i = 0; i < x->n_seq; i++) {
		x->seq[i].slot = path_slot(x, t, x->seq[i].span);
		x->seen[x->seq[i].slot] = i;
	}
}

/* Adds a range with a sequence number to `seq`, unless one around it has the same name and number. */
static void path_number(struct pyprof_path *x, const struct pyprof_records *r, struct pyprof_level *level, uint32_t span)
{
	const struct spans *t = &r->p->span;
	path_grow_seen(x, t);
	uint32_t slot = path_slot(x, t, span);
	if (x->seen[slot] != ROW_NONE)
		return;
	int64_t least = x->n_seq ? x->seq[x->n_seq - 1].least : INT64_MAX, id = t->link_id[span];
	x->seen[slot] = x->n_seq;
	MEM_PUSH(x->seq, x->n_seq, x->cap_seq, (struct pyprof_path_seq){span, slot, id && id < least ? id : least});
	x->n_zero += !id;
	level->numbered = true;
	if (r->rules == PYPROF_RECORDS_DEFAULT && (pyprof_name_flags(r, t->name[span]) & NAME_AUTOGRAD))
		path_list(x, level, PYPROF_LIST_BACKWARD, span);
}

/* Adds what the range of the next level says; its node is set. */
static void path_push(struct pyprof_path *x, const struct pyprof_records *r)
{
	struct pyprof_level *level = &x->level[x->n++];
	uint32_t span = r->node[level->node].span;
	unsigned flags = pyprof_name_flags(r, r->p->span.name[span]);
	bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	*level = (struct pyprof_level){.node = level->node};
	switch (pyprof_range_kind(r, span)) {
	case PYPROF_IGNORED:
		return;
	case PYPROF_MARKER:
		if (!pyprof_is_import(r, span))
			path_list(x, level, PYPROF_LIST_MARKER, span);
		break;
	case PYPROF_LAYER:
		path_list(x, level, PYPROF_LIST_LAYER, span);
		break;
	case PYPROF_TRACE:
		path_list(x, level, PYPROF_LIST_TRACE, span);
		break;
	case PYPROF_REPR:
		path_list(x, level, PYPROF_LIST_REPR, span);
		break;
	case PYPROF_SEQUENCE:
		path_number(x, r, level, span);
		break;
	case PYPROF_PLAIN:
		path_list(x, level, PYPROF_LIST_PLAIN, span);
		if (r->p->span.kind[span] == SPAN_OP)
			path_list(x, level, PYPROF_LIST_OP, span);
		break;
	}
	level->backward = own && (flags & NAME_AUTOGRAD);
	level->accumulate = own && (flags & NAME_ACCUMULATE);
	x->n_backward += level->backward;
	x->n_accumulate += level->accumulate;
}

static void path_pop(struct pyprof_path *x, const struct pyprof_records *r)
{
	const struct pyprof_level *level = &x->level[--x->n];
	for (unsigned i = 0; i < PYPROF_LISTS; i++)
		x->list[i].n -= level->lists >> i & 1;
	if (level->numbered) {
		const struct pyprof_path_seq *last = &x->seq[--x->n_seq];
		x->n_zero -= !r->p->span.link_id[last->span];
		x->seen[last->slot] = ROW_NONE;
		if (x->low_seq > x->n_seq)
			x->low_seq = x->n_seq;
	}
	x->n_backward -= level->backward;
	x->n_accumulate -= level->accumulate;
}

void pyprof_path_go(struct pyprof_path *x, const struct pyprof_records *r, uint32_t chain)
{
	uint32_t n = chain == ROW_NONE ? 0 : r->node[chain].depth + 1, c = chain, common = n;
	for (; common && (common > x->n || x->level[common - 1].node != c); common--)
		c = r->node[c].outer;
	while (x->n > common)
		path_pop(x, r);
	MEM_GROW(x->level, x->cap, n);
	c = chain;
	for (uint32_t i = n; i-- > common; c = r->node[c].outer)
		x->level[i].node = c;
	while (x->n < n)
		path_push(x, r);
}

void pyprof_path_release(struct pyprof_path *x)
{
	for (unsigned i = 0; i < PYPROF_LISTS; i++)
		mem_free(x->list[i].v);
	mem_free(x->level);
	mem_free(x->seq);
	mem_free(x->seen);
	*x = (struct pyprof_path){0};
}

bool pyprof_path_has_zero(const struct pyprof_path *x)
{
	return x->n_zero && (x->n_zero == x->n_seq || x->seq[x->n_seq - 1].least < 0);
}

int64_t pyprof_path_least(const struct pyprof_path *x)
{
	assert(x->n_seq);
	return x->n_zero == x->n_seq ? 0 : x->seq[x->n_seq - 1].least;
}
