#include "report/parts/memory_peak.h"

#include "analysis/memory/memory.h"
#include "analysis/memory/memory_categories.h"
#include "analysis/memory/memory_owners.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"

#include <stdio.h>
#include <stdlib.h>

/* Kinds besides torch's categories: memory held before the recording and not freed in it, memory held before and freed in it, and memory of no block that
 * is known. */
enum { HELD_KEPT = MEMORY_CATEGORIES, HELD_FREED_LATER, HELD_UNFOLLOWED, HELD_KINDS };

struct memory_peak_key {
	struct memory_owner owner; /* its module only where allocations have stacks of their own */
	uint32_t kind;
};

struct memory_peak_group {
	struct memory_peak_key key;
	uint64_t blocks;
	int64_t bytes, largest;
};

struct memory_peak_held {
	const struct profile *p;
	const struct memory_timeline *t;
	struct memory_owners *owners;
	int device;
	struct intern keys;
	struct memory_peak_group *v;
	uint32_t n, cap;
	int64_t total, kind_bytes[HELD_KINDS];
	uint64_t kind_blocks[HELD_KINDS];
	int64_t sum;                   /* where totals were not recorded: the sum of the events */
	bool has_total;                /* the allocator's */
};

static const char *kind_text(const struct memory_peak_held *h, unsigned kind)
{
	switch (kind) {
	case HELD_KEPT:
		return h->p->memory_block.rows.n ? "held all the time" : memory_kept_text(h->t);
	case HELD_FREED_LATER:
		return "held before the recording, freed in it";
	case HELD_UNFOLLOWED:
		return h->p->memory_block.rows.n ? "rounded up by the allocator" : "in no block that can be followed";
	}
	return memory_category_name[kind];
}

static void memory_peak_add(struct memory_peak_held *h, struct memory_peak_key k, int64_t bytes, uint64_t blocks)
{
	uint32_t before = h->keys.n, at = intern_put(&h->keys, (const char *)&k, sizeof k) - 1;
	if (h->keys.n > before)
		MEM_PUSH(h->v, h->n, h->cap, (struct memory_peak_group){.key = k});
	struct memory_peak_group *g = &h->v[at];
	g->blocks += blocks;
	g->bytes += bytes;
	g->largest = blocks && bytes > g->largest ? bytes : g->largest;
	h->kind_bytes[k.kind] += bytes;
	h->kind_blocks[k.kind] += blocks;
}

static void memory_peak_add_block(struct memory_peak_held *h, const struct memory_pair *k)
{
	const struct memories *m = &h->p->memory;
	if (k->alloc == ROW_NONE) {
		uint8_t category = h->t->category_of[k->release];
		memory_peak_add(h, (struct memory_peak_key){.kind = category == MEMORY_UNKNOWN ? HELD_FREED_LATER : category}, -m->bytes[k->release], 1);
		return;
	}
	struct memory_peak_key key = {memory_owner_of(h->owners, k->alloc), h->t->category_of[k->alloc]};
	if (!m->args)
		key.owner.module = 0;
	memory_peak_add(h, key, m->bytes[k->alloc], 1);
}

/* Of a memory snapshot: blocks that were there all the time, and what the allocator gave beyond what was asked for. Returns their bytes. */
static int64_t memory_peak_add_blocks(struct memory_peak_held *h)
{
	struct memory_live *live;
	uint32_t n = memory_live(h->p, h->device, &live);
	int64_t bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (live[i].alloc != ROW_NONE)
			continue;
		uint32_t block = live[i].block;
		memory_peak_add(h, (struct memory_peak_key){memory_owner_by_stack(h->owners, h->p->memory_block.args[block]), HELD_KEPT}, h->p->memory_block.bytes[block], 1);
		bytes += h->p->memory_block.bytes[block];
	}
	mem_free(live);
	return bytes;
}

/* The row at which the sum of the events is highest; the sum goes to h->sum. The lowest sum is 0: what is freed without an allocation was held before. */
static uint32_t highest_sum(struct memory_peak_held *h, const struct window *w)
{
	const struct memories *m = &h->p->memory;
	int64_t sum = 0, lowest = 0;
	uint32_t at = ROW_NONE;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (memory_device(h->p, i) != h->device || !memory_is_event(h->p, i) || __builtin_add_overflow(sum, m->bytes[i], &sum))
			continue;
		lowest = sum < lowest ? sum : lowest;
		if (window_has(w, m->time_ns[i]) && (at == ROW_NONE || sum > h->sum)) {
			h->sum = sum;
			at = i;
		}
	}
	if (__builtin_sub_overflow(h->sum, lowest, &h->sum))
		h->sum = INT64_MAX;
	return at;
}

/* Adds memory that was held and is in no block of the recording: parameters and others by the rules of categories, and a rest. The rest has a name on an accelerator,
 * whose allocator counts all that it gave away; host memory is counted from some moment before the recording. */
static void add_rest(struct memory_peak_held *h, int64_t known)
{
	int64_t rest;
	if (__builtin_sub_overflow(h->total, known, &rest) || rest <= 0)
		return;
	/* Where the program said what it held, it is known that totals of host memory do not have it. */
	bool counted = h->has_total && !(h->t->held_stated && h->device == MEMORY_CPU);
	for (unsigned c = 0; c < MEMORY_CATEGORIES && counted; c++) {
		int64_t bytes = h->t->kept_of[c] - (c == MEMORY_UNKNOWN ? h->t->kept_bytes : 0);
		bytes = bytes < rest ? bytes : rest;
		if (bytes)
			memory_peak_add(h, (struct memory_peak_key){.kind = c}, bytes, 0);
		rest -= bytes;
	}
	bool snapshot = h->p->memory_block.rows.n > 0; /* its blocks are known: the rest is what the allocator rounded up */
	int64_t kept = !h->t->before_is_whole || !h->has_total || snapshot ? 0 : h->t->kept_bytes < rest ? h->t->kept_bytes : rest;
	if (kept)
		memory_peak_add(h, (struct memory_peak_key){.kind = HELD_KEPT}, kept, 0);
	if (rest > kept)
		memory_peak_add(h, (struct memory_peak_key){.kind = HELD_UNFOLLOWED}, rest - kept, 0);
}

static void memory_peak_collect(struct memory_peak_held *h, uint32_t at)
{
	const struct memories *m = &h->p->memory;
	struct memory_pair *pair;
	uint32_t n = memory_pairs(h->p, h->device, &pair);
	int64_t known = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct memory_pair *k = &pair[i];
		if ((k->alloc != ROW_NONE && k->alloc > at) || (k->release != ROW_NONE && k->release <= at))
			continue;
		memory_peak_add_block(h, k);
		known += k->alloc == ROW_NONE ? -m->bytes[k->release] : m->bytes[k->alloc];
	}
	mem_free(pair);
	known += memory_peak_add_blocks(h);
	h->has_total = memory_has_totals(h->p, at);
	h->total = h->has_total ? m->total_allocated[at] : h->sum;
	add_rest(h, known);
}

static int memory_peak_by_bytes(const void *a, const void *b)
{
	const struct memory_peak_group *x = a, *y = b;
	return COMPARE(y->bytes, x->bytes) ?: memcmp(&x->key, &y->key, sizeof x->key);
}

static void memory_peak_put_device(struct table *t, unsigned col, int device)
{
	if (device == MEMORY_CPU)
		table_set_str(t, col, STR("CPU"));
	else
		table_set_fmt(t, col, "GPU%d", device);
}

enum { MEMORY_HELD_DEVICE, MEMORY_HELD_CATEGORY, MEMORY_HELD_BYTES, MEMORY_HELD_SHARE, MEMORY_HELD_BLOCKS };

const struct section memory_held_section = {.name = "held", .title = "Held at the peak, by what it is for", COLUMNS(
	[MEMORY_HELD_DEVICE] = {COLUMN(TEXT, "device", "Device", "CPU or GPU and its ordinal")},
	[MEMORY_HELD_CATEGORY] = {COLUMN(TEXT, "category", "Category", "what the memory is for, in torch's words (report memory-categories); or why that is not known")},
	[MEMORY_HELD_BYTES] = {COLUMN(BYTES, "bytes", "Held", "at the peak", .flags = COLUMN_ANSWER)},
	[MEMORY_HELD_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of all that is held then")},
	[MEMORY_HELD_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "allocated or freed in the recording; 0 = held without a record of its own")},
)};

static void put_kinds(const struct memory_peak_held *h, struct table *t)
{
	bool done[HELD_KINDS] = {false};
	for (unsigned i = 0; i < HELD_KINDS; i++) {
		unsigned best = HELD_KINDS;
		for (unsigned k = 0; k < HELD_KINDS; k++)
			if (!done[k] && h->kind_bytes[k] && (best == HELD_KINDS || h->kind_bytes[k] > h->kind_bytes[best]))
				best = k;
		if (best == HELD_KINDS)
			return;
		done[best] = true;
		table_row(t);
		memory_peak_put_device(t, MEMORY_HELD_DEVICE, h->device);
		table_set_str_copy(t, MEMORY_HELD_CATEGORY, str_from(kind_text(h, best)));
		table_set_i64(t, MEMORY_HELD_BYTES, h->kind_bytes[best]);
		table_set_f64(t, MEMORY_HELD_SHARE, percent((double)h->kind_bytes[best], (double)h->total));
		table_set_i64(t, MEMORY_HELD_BLOCKS, (int64_t)h->kind_blocks[best]);
	}
}

enum {
	MEMORY_HELD_OP_DEVICE, MEMORY_HELD_OP_OPERATOR, MEMORY_HELD_OP_LINE, MEMORY_HELD_OP_MODULE, MEMORY_HELD_OP_CATEGORY, MEMORY_HELD_OP_BYTES, MEMORY_HELD_OP_SHARE, MEMORY_HELD_OP_BLOCKS,
	MEMORY_HELD_OP_LARGEST
};

const struct section memory_held_by_op_section = {.name = "held_by_op", .title = "Held at the peak, by what allocated it", COLUMNS(
	[MEMORY_HELD_OP_DEVICE] = {COLUMN(TEXT, "device", "Device", "CPU or GPU and its ordinal")},
	[MEMORY_HELD_OP_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "innermost op around the allocation, of aten::empty and its kin the op around it first",
	                                    .flags = COLUMN_ANSWER)},
	[MEMORY_HELD_OP_LINE] = {COLUMN(TEXT, "line", "Line", "innermost line of the user's own code around that op", .flags = COLUMN_PATH), .when = WHEN_STACKS},
	[MEMORY_HELD_OP_MODULE] = {COLUMN(TEXT, "module", "Calls of forward()", "of a memory snapshot, which does not name modules: the calls of forward() around the allocation that are "
	                                  "not torch's, outermost first", .flags = COLUMN_PATH), .when = WHEN_RECORDED},
	[MEMORY_HELD_OP_CATEGORY] = {COLUMN(TEXT, "category", "Category", "what the memory is for, as in the section 'held'")},
	[MEMORY_HELD_OP_BYTES] = {COLUMN(BYTES, "bytes", "Held", "at the peak", .flags = COLUMN_ANSWER)},
	[MEMORY_HELD_OP_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of all that is held then")},
	[MEMORY_HELD_OP_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "how many")},
	[MEMORY_HELD_OP_LARGEST] = {COLUMN(BYTES, "largest_bytes", "Largest", "block")},
)};

static void memory_peak_put_ops(const struct memory_peak_held *h, struct table *t)
{
	if (h->n)
		qsort(h->v, h->n, sizeof *h->v, memory_peak_by_bytes);
	for (uint32_t i = 0; i < h->n; i++) {
		const struct memory_peak_group *g = &h->v[i];
		table_row(t);
		memory_peak_put_device(t, MEMORY_HELD_OP_DEVICE, h->device);
		if (g->key.owner.op)
			table_set_str_copy(t, MEMORY_HELD_OP_OPERATOR, memory_owner_text(h->owners, g->key.owner.op));
		else if (g->key.kind == HELD_UNFOLLOWED || (g->key.kind < MEMORY_CATEGORIES && h->p->memory.args))
			table_set_str(t, MEMORY_HELD_OP_OPERATOR, STR("(not known)"));
		else
			table_set_str(t, MEMORY_HELD_OP_OPERATOR, g->blocks && g->key.kind < MEMORY_CATEGORIES ? STR("(outside of any op)") : STR("(before the recording)"));
		if (g->key.owner.line)
			table_set_str_copy(t, MEMORY_HELD_OP_LINE, memory_owner_text(h->owners, g->key.owner.line));
		if (g->key.owner.module)
			table_set_str_copy(t, MEMORY_HELD_OP_MODULE, memory_owner_text(h->owners, g->key.owner.module));
		table_set_str_copy(t, MEMORY_HELD_OP_CATEGORY, str_from(kind_text(h, g->key.kind)));
		table_set_i64(t, MEMORY_HELD_OP_BYTES, g->bytes);
		table_set_f64(t, MEMORY_HELD_OP_SHARE, percent((double)g->bytes, (double)h->total));
		table_set_i64(t, MEMORY_HELD_OP_BLOCKS, (int64_t)g->blocks);
		if (g->blocks)
			table_set_i64(t, MEMORY_HELD_OP_LARGEST, g->largest);
	}
}

/* Why the recording has no record of a block. */
static const char *why_unfollowed(const struct memory_peak_held *h)
{
	return h->t->unknown_blocks[MEMORY_WHY_NO_ADDRESS] ? "the trace has no addresses, so that no block can be followed (torch 1.10 and later record them)"
	                                                   : "allocated before the recording, or its record is missing";
}

static void memory_peak_note(const struct memory_peak_held *h, uint32_t at, struct table *kinds, struct table *ops)
{
	char device[24] = "CPU";
	int64_t sum = 0;
	if (h->device != MEMORY_CPU)
		snprintf(device, sizeof device, "GPU%d", h->device);
	for (int k = 0; k < HELD_KINDS; k++)
		sum += h->kind_bytes[k];
	table_note(kinds, "%s: %lld bytes %s, %lld ns after the start of the trace", device, (long long)h->total,
	           h->has_total ? "allocated" : "by the events of the recording, and what was held all the time (the allocator's total was not recorded)",
	           (long long)(h->p->memory.time_ns[at] - memory_zero_ns(h->p)));
	if (sum > h->total)
		table_note(kinds, "%s: the blocks add up to %lld bytes more than the allocator had given away: frees of some were not recorded", device, (long long)(sum - h->total));
	if (!h->kind_bytes[HELD_UNFOLLOWED] || h->p->memory_block.rows.n)
		return;
	table_note(kinds, "%s: of %lld bytes no block is known: %s", device, (long long)h->kind_bytes[HELD_UNFOLLOWED], why_unfollowed(h));
	table_note(ops, "%s: of %lld bytes the op is not known: %s", device, (long long)h->kind_bytes[HELD_UNFOLLOWED], why_unfollowed(h));
}

/* The allocator numbers the devices that the process sees, the tracer those of the machine. */
static void note_number(const struct memory_peak_held *h, struct table *kinds)
{
	const struct launches *l = &h->p->launch;
	int32_t works = INT32_MIN;
	bool several = false;
	if (h->device == MEMORY_CPU)
		return;
	for (uint32_t i = 0; i < l->rows.n; i++) {
		if (l->device[i] == INT32_MIN)
			continue;
		if (l->device[i] == h->device)
			return;
		several |= works != INT32_MIN && works != l->device[i];
		works = l->device[i];
	}
	if (works != INT32_MIN && !several)
		table_note(kinds, "GPU%d is most likely the device whose work is told as that of device %d: the allocator numbers the devices that the process sees, the "
		           "tracer those of the machine", h->device, works);
}

static int memory_peak_put(const struct profile *p, const struct window *w, struct memory_owners *owners, int device, const struct memory_peak *peak, struct table *kinds,
                           struct table *ops, struct err *e)
{
	struct memory_peak_held h = {.p = p, .owners = owners, .device = device, .t = memory_timeline_new(p, device, e)};
	if (!h.t)
		return -1;
	intern_init(&h.keys);
	uint32_t at = peak->allocated != ROW_NONE ? peak->allocated : highest_sum(&h, w);
	if (at != ROW_NONE) {
		memory_peak_collect(&h, at);
		put_kinds(&h, kinds);
		memory_peak_put_ops(&h, ops);
		memory_peak_note(&h, at, kinds, ops);
		note_number(&h, kinds);
	}
	intern_release(&h.keys);
	mem_free(h.v);
	memory_timeline_free((struct memory_timeline *)(uintptr_t)h.t);
	return 0;
}

int memory_peak_sections(const struct profile *p, const struct window *w, int device, const struct report_args *args, struct table *out, struct err *e)
{
	struct memory_peak *peak;
	size_t n = memory_peaks(p, w->all ? INT64_MIN : w->start_ns, w->all ? INT64_MAX : w->end_ns - 1, &peak);
	struct memory_owners *owners = memory_owners_new(p);
	unsigned have = (memory_owners_have_lines(owners) ? WHEN_STACKS : 0) | (p->memory.args && memory_owners_have_modules(owners) ? WHEN_RECORDED : 0);
	struct table *kinds = section_add(&memory_held_section, args, 0, out), *ops = section_add(&memory_held_by_op_section, args, have, out);
	int rc = 0;
	kinds->lead = ops->lead = true;
	for (size_t d = 0; d < n && rc == 0; d++) {
		int this = (int)d + MEMORY_CPU;
		if (peak[d].events && (this == device || (!args->device && device != MEMORY_CPU && this != MEMORY_CPU)))
			rc = memory_peak_put(p, w, owners, this, &peak[d], kinds, ops, e);
	}
	memory_owners_free(owners);
	mem_free(peak);
	return rc;
}
