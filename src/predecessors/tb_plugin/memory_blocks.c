#include "predecessors/tb_plugin/memory_blocks.h"

#include "analysis/memory/memory.h"
#include "analysis/tree/optree.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/round.h"

#include <math.h>

/* A dictionary by address: a value that is put again keeps its place in the order, one that was taken out and put anew goes to the end. */
struct by_address {
	struct idmap slot_of;
	uint32_t *row, n; /* of each slot; ROW_NONE = taken out */
};

enum { NO_SLOT = IDMAP_NONE - 1 };

static void address_range(const struct profile *p, int64_t *min, int64_t *max)
{
	*min = INT64_MAX, *max = INT64_MIN;
	for (uint32_t i = 0; i < p->memory.rows.n; i++) {
		int64_t a = p->memory.addr[i];
		*min = a != ID_NONE && a < *min ? a : *min;
		*max = a != ID_NONE && a > *max ? a : *max;
	}
}

static void by_address_init(struct by_address *d, const struct profile *p)
{
	int64_t min, max;
	address_range(p, &min, &max);
	idmap_init(&d->slot_of, min, max, p->memory.rows.n);
	d->row = NEW_ARRAY_RAW(p->memory.rows.n, uint32_t);
	d->n = 0;
}

static void by_address_release(struct by_address *d)
{
	idmap_release(&d->slot_of);
	mem_free(d->row);
}

static void by_address_put(struct by_address *d, int64_t addr, uint32_t row)
{
	uint32_t at = idmap_get(&d->slot_of, addr);
	if (at == IDMAP_NONE || at == NO_SLOT) {
		at = d->n++;
		idmap_put(&d->slot_of, addr, at);
	}
	d->row[at] = row;
}

/* ROW_NONE where the address is not there. */
static uint32_t by_address_take(struct by_address *d, int64_t addr)
{
	uint32_t at = idmap_get(&d->slot_of, addr);
	if (at == IDMAP_NONE || at == NO_SLOT)
		return ROW_NONE;
	uint32_t row = d->row[at];
	d->row[at] = ROW_NONE;
	idmap_put(&d->slot_of, addr, NO_SLOT);
	return row;
}

static bool tb_memory_blocks_listed(const struct profile *p, uint32_t i)
{
	return p->memory.addr[i] != ID_NONE && memory_is_event(p, i);
}

/* For each memory row the row that allocated its block, also where the window holds only the free: itself, or ROW_NONE. */
static uint32_t *allocations(const struct profile *p)
{
	const struct memories *m = &p->memory;
	uint32_t *alloc = NEW_ARRAY_RAW(m->rows.n, uint32_t);
	struct by_address open;
	by_address_init(&open, p);
	for (uint32_t i = 0; i < m->rows.n; i++) {
		alloc[i] = m->bytes[i] > 0 ? i : ROW_NONE;
		if (!tb_memory_blocks_listed(p, i))
			continue;
		if (m->bytes[i] > 0)
			by_address_put(&open, m->addr[i], i);
		else
			alloc[i] = by_address_take(&open, m->addr[i]);
	}
	by_address_release(&open);
	return alloc;
}

/* The innermost node of the tree around the moment of a row. */
static uint32_t node_around(const struct profile *p, const struct optree *t, uint32_t span)
{
	while (span != ROW_NONE && t->node_of_span[span] == ROW_NONE)
		span = p->span.parent[span];
	return span == ROW_NONE ? ROW_NONE : t->node_of_span[span];
}

struct tb_memory_blocks_list {
	const struct profile *p;
	const struct optree *t;
	int device;
	uint32_t *alloc, *around, n;
	struct memory_block *v;
};

static void tb_memory_blocks_add_block(struct tb_memory_blocks_list *l, uint32_t alloc, uint32_t release)
{
	const struct memories *m = &l->p->memory;
	uint32_t row = alloc != ROW_NONE ? alloc : release;
	if (memory_device(l->p, row) != l->device)
		return;
	uint32_t first = l->alloc[row], node = first == ROW_NONE ? ROW_NONE : node_around(l->p, l->t, l->around[first]);
	bool op = node != ROW_NONE && l->t->kind[node] == NODE_OP;
	l->v[l->n++] = (struct memory_block){
		.bytes = release != ROW_NONE ? -m->bytes[release] : m->bytes[alloc],
		.alloc = alloc,
		.release = release,
		.op = op ? node : ROW_NONE,
		.around = op ? l->t->parent[node] : ROW_NONE,
	};
}

uint32_t memory_blocks(const struct profile *p, const struct optree *t, const struct window *w, int device, struct memory_block **out)
{
	const struct memories *m = &p->memory;
	struct tb_memory_blocks_list l = {p, t, device, allocations(p), memory_around(p), 0, NEW_ARRAY_RAW(m->rows.n, struct memory_block)};
	struct by_address open, freed;
	by_address_init(&open, p);
	by_address_init(&freed, p);
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (!tb_memory_blocks_listed(p, i) || !window_has(w, m->time_ns[i]))
			continue;
		uint32_t alloc = m->bytes[i] > 0 ? ROW_NONE : by_address_take(&open, m->addr[i]);
		if (m->bytes[i] > 0)
			by_address_put(&open, m->addr[i], i);
		else if (alloc != ROW_NONE)
			tb_memory_blocks_add_block(&l, alloc, i);
		else
			by_address_put(&freed, m->addr[i], i);
	}
	for (uint32_t i = 0; i < open.n; i++)
		if (open.row[i] != ROW_NONE)
			tb_memory_blocks_add_block(&l, open.row[i], ROW_NONE);
	for (uint32_t i = 0; i < freed.n; i++)
		tb_memory_blocks_add_block(&l, ROW_NONE, freed.row[i]);
	by_address_release(&open);
	by_address_release(&freed);
	mem_free(l.alloc);
	mem_free(l.around);
	*out = l.v;
	return l.n;
}

static struct str node_name(const struct profile *p, const struct optree *t, uint32_t node)
{
	return profile_str(p, p->span.name[t->span[node]]);
}

void memory_block_name(const struct profile *p, const struct optree *t, const struct memory_block *x, struct buf *b)
{
	struct str name = x->op == ROW_NONE ? STR("<unknown>") : node_name(p, t, x->op);
	struct str around = x->around == ROW_NONE ? STR("CallTreeRoot") : node_name(p, t, x->around);
	if (str_starts(name, STR("aten::empty")))
		buf_printf(b, STR_FMT " (" STR_FMT ")", STR_ARG(around), STR_ARG(name));
	else
		buf_str(b, name);
}

/* The number that a reader of JSON has of a time. */
static double in_us(int64_t ns)
{
	return (double)((long double)ns / 1000);
}

double memory_span_in(const struct profile *p, uint32_t from, uint32_t to, double unit_ns)
{
	double begin = in_us(from == ROW_NONE ? memory_zero_ns(p) : p->memory.time_ns[from]);
	return 1 / (unit_ns / 1000) * (in_us(p->memory.time_ns[to]) - begin);
}

double memory_shown(double v)
{
	double size = fabs(v);
	return round_digits(v, size >= 0.01 || size == 0 ? 2 : (int)-floor(log10(size)));
}
