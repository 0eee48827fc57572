/* How much of the memory that the allocator has taken from the driver is in use, and in what pieces the rest is. */
#include "analysis/memory/memory.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/report.h"

#include <stdlib.h>

/* Kinds of free memory: in a segment that has blocks in use; a whole segment; in an expandable segment, which can shrink. */
enum { FRAGMENTATION_SPLIT, FRAGMENTATION_WHOLE, FRAGMENTATION_EXPANDABLE, FRAGMENTATION_FREES };

struct fragmentation_sum {
	uint64_t segments, free_blocks;
	int64_t reserved, allocated, active, requested, free[FRAGMENTATION_FREES], largest_free;
};

struct fragmentation_segment {
	struct fragmentation_sum sum;
	uint64_t blocks;           /* in use */
	uint32_t row;
	bool expandable;
};

struct fragmentation_key {
	int64_t stream;
	int32_t device;
	uint32_t type, pool, all;  /* all: 1 = the whole device, not a pool */
};

struct fragmentation_pool {
	struct fragmentation_key key;
	struct fragmentation_sum sum;
};

struct fragmentation {
	const struct profile *p;
	struct fragmentation_segment *segment;
	struct intern keys;
	struct fragmentation_pool *v;
	uint32_t n, cap;
};

static void fragmentation_measure(struct fragmentation *f)
{
	const struct memory_segments *s = &f->p->memory_segment;
	const struct memory_blocks *b = &f->p->memory_block;
	f->segment = NEW_ARRAY(s->rows.n, struct fragmentation_segment);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		f->segment[i] = (struct fragmentation_segment){.row = i, .expandable = s->expandable[i]};
		f->segment[i].sum = (struct fragmentation_sum){.segments = 1, .reserved = s->total_bytes[i], .allocated = s->allocated_bytes[i], .active = s->active_bytes[i],
		                                               .requested = s->requested_bytes[i]};
	}
	for (uint32_t i = 0; i < b->rows.n; i++) {
		struct fragmentation_segment *g = &f->segment[b->segment[i]];
		if (str_starts(profile_str(f->p, b->state[i]), STR("active"))) {
			g->blocks++;
			continue;
		}
		g->sum.free_blocks++;
		g->sum.free[FRAGMENTATION_SPLIT] += b->bytes[i];
		g->sum.largest_free = b->bytes[i] > g->sum.largest_free ? b->bytes[i] : g->sum.largest_free;
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		struct fragmentation_segment *g = &f->segment[i];
		unsigned kind = g->expandable ? FRAGMENTATION_EXPANDABLE : g->blocks ? FRAGMENTATION_SPLIT : FRAGMENTATION_WHOLE;
		int64_t free = g->sum.free[FRAGMENTATION_SPLIT];
		g->sum.free[FRAGMENTATION_SPLIT] = 0;
		g->sum.free[kind] = free;
	}
}

static void fragmentation_add(struct fragmentation *f, struct fragmentation_key k, const struct fragmentation_sum *x)
{
	uint32_t before = f->keys.n, at = intern_put(&f->keys, (const char *)&k, sizeof k) - 1;
	if (f->keys.n > before)
		MEM_PUSH(f->v, f->n, f->cap, (struct fragmentation_pool){.key = k});
	struct fragmentation_sum *sum = &f->v[at].sum;
	sum->segments += x->segments;
	sum->free_blocks += x->free_blocks;
	sum->reserved += x->reserved;
	sum->allocated += x->allocated;
	sum->active += x->active;
	sum->requested += x->requested;
	for (unsigned i = 0; i < FRAGMENTATION_FREES; i++)
		sum->free[i] += x->free[i];
	sum->largest_free = x->largest_free > sum->largest_free ? x->largest_free : sum->largest_free;
}

static int fragmentation_by_device(const void *a, const void *b)
{
	const struct fragmentation_pool *x = a, *y = b;
	return COMPARE(x->key.device, y->key.device) ?: COMPARE(y->key.all, x->key.all) ?: COMPARE(y->sum.reserved, x->sum.reserved) ?: memcmp(&x->key, &y->key, sizeof x->key);
}

static void fragmentation_pools(struct fragmentation *f)
{
	const struct memory_segments *s = &f->p->memory_segment;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		fragmentation_add(f, (struct fragmentation_key){.device = s->device[i], .all = 1}, &f->segment[i].sum);
		fragmentation_add(f, (struct fragmentation_key){s->stream[i], s->device[i], s->type[i], s->pool[i], 0}, &f->segment[i].sum);
	}
	qsort(f->v, f->n, sizeof *f->v, fragmentation_by_device);
}

enum {
	FRAGMENTATION_DEVICE, FRAGMENTATION_POOL, FRAGMENTATION_STREAM, FRAGMENTATION_SEGMENTS, FRAGMENTATION_RESERVED, FRAGMENTATION_ALLOCATED, FRAGMENTATION_WAITING,
	FRAGMENTATION_REQUESTED, FRAGMENTATION_FREE_SPLIT, FRAGMENTATION_SPLIT_PCT, FRAGMENTATION_FREE_WHOLE, FRAGMENTATION_FREE_EXPANDABLE, FRAGMENTATION_FREE_BLOCKS,
	FRAGMENTATION_LARGEST
};

static const struct section fragmentation_section = {COLUMNS(
	[FRAGMENTATION_DEVICE] = {COLUMN(TEXT, "device", "Device", "GPU and its ordinal")},
	[FRAGMENTATION_POOL] = {COLUMN(TEXT, "pool", "Pool", "all = the whole device; else a pool: small (allocations of up to 1 MB) or large, and for a private pool, "
	                               "as CUDA graphs have, its id", .flags = COLUMN_ANSWER)},
	[FRAGMENTATION_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "stream whose allocations may use the pool, by torch's number; 0 = the default stream", .flags = COLUMN_MINOR)},
	[FRAGMENTATION_SEGMENTS] = {COLUMN(COUNT, "segments", "Segments", "segments: pieces of memory that the allocator took from the driver", .flags = COLUMN_MINOR)},
	[FRAGMENTATION_RESERVED] = {COLUMN(BYTES, "reserved_bytes", "Reserved", "size of these segments", .flags = COLUMN_ANSWER)},
	[FRAGMENTATION_ALLOCATED] = {COLUMN(BYTES, "allocated_bytes", "Allocated", "size of the blocks that the program holds", .flags = COLUMN_ANSWER)},
	[FRAGMENTATION_WAITING] = {COLUMN(BYTES, "waiting_bytes", "Waiting", "size of the blocks that are freed, but wait for another stream")},
	[FRAGMENTATION_REQUESTED] = {COLUMN(BYTES, "requested_bytes", "Requested", "bytes that the program asked for: the rest of its blocks is rounding", .flags = COLUMN_MINOR)},
	[FRAGMENTATION_FREE_SPLIT] = {COLUMN(BYTES, "split_free_bytes", "Free, split", "size of the free blocks in segments that have blocks in use: they serve allocations that fit, and cannot be given back to the driver "
	                                     "(torch's inactive_split_bytes)", .flags = COLUMN_ANSWER)},
	[FRAGMENTATION_SPLIT_PCT] = {COLUMN(PERCENT, "split_pct", "Split", "memory that is free and split / reserved memory")},
	[FRAGMENTATION_FREE_WHOLE] = {COLUMN(BYTES, "whole_free_bytes", "Free, whole", "size of the segments without a block in use: torch.cuda.empty_cache() gives them back", .flags = COLUMN_ANSWER)},
	[FRAGMENTATION_FREE_EXPANDABLE] = {COLUMN(BYTES, "expandable_free_bytes", "Free, expandable", "size of the free blocks of expandable segments, which can give back pages")},
	[FRAGMENTATION_FREE_BLOCKS] = {COLUMN(COUNT, "free_blocks", "Free Blocks", "number of free blocks")},
	[FRAGMENTATION_LARGEST] = {COLUMN(BYTES, "largest_free_bytes", "Largest Free", "size of the largest free block: a larger allocation takes new memory from the driver")},
)};

static void fragmentation_put_pools(const struct fragmentation *f, struct table *t)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fragmentation_sum *x = &f->v[i].sum;
		const struct fragmentation_key *k = &f->v[i].key;
		struct str type = profile_str(f->p, k->type), pool = profile_str(f->p, k->pool);
		table_row(t);
		table_set_fmt(t, FRAGMENTATION_DEVICE, "GPU%d", k->device);
		if (k->all)
			table_set_str(t, FRAGMENTATION_POOL, STR("all"));
		else if (!pool.n || str_eq(pool, STR("(0, 0)")))
			table_set_str(t, FRAGMENTATION_POOL, type.n ? type : STR("not known"));
		else
			table_set_fmt(t, FRAGMENTATION_POOL, STR_FMT " " STR_FMT, STR_ARG(type), STR_ARG(pool));
		if (!k->all && k->stream != ID_NONE)
			table_set_i64(t, FRAGMENTATION_STREAM, k->stream);
		table_set_i64(t, FRAGMENTATION_SEGMENTS, (int64_t)x->segments);
		table_set_i64(t, FRAGMENTATION_RESERVED, x->reserved);
		table_set_i64(t, FRAGMENTATION_ALLOCATED, x->allocated);
		table_set_i64(t, FRAGMENTATION_WAITING, x->active > x->allocated ? x->active - x->allocated : 0);
		table_set_i64(t, FRAGMENTATION_REQUESTED, x->requested);
		table_set_i64(t, FRAGMENTATION_FREE_SPLIT, x->free[FRAGMENTATION_SPLIT]);
		table_set_f64(t, FRAGMENTATION_SPLIT_PCT, percent((double)x->free[FRAGMENTATION_SPLIT], (double)x->reserved));
		table_set_i64(t, FRAGMENTATION_FREE_WHOLE, x->free[FRAGMENTATION_WHOLE]);
		table_set_i64(t, FRAGMENTATION_FREE_EXPANDABLE, x->free[FRAGMENTATION_EXPANDABLE]);
		table_set_i64(t, FRAGMENTATION_FREE_BLOCKS, (int64_t)x->free_blocks);
		table_set_i64(t, FRAGMENTATION_LARGEST, x->largest_free);
	}
}

enum {
	FRAGMENTATION_SEGMENT_DEVICE, FRAGMENTATION_SEGMENT_ADDR, FRAGMENTATION_SEGMENT_TYPE, FRAGMENTATION_SEGMENT_EXPANDABLE, FRAGMENTATION_SEGMENT_SIZE,
	FRAGMENTATION_SEGMENT_ACTIVE, FRAGMENTATION_SEGMENT_BLOCKS, FRAGMENTATION_SEGMENT_FREE, FRAGMENTATION_SEGMENT_FREE_BLOCKS, FRAGMENTATION_SEGMENT_LARGEST
};

static const struct section fragmentation_segment_section = {.name = "segments", .title = "Segments, most free memory first", COLUMNS(
	[FRAGMENTATION_SEGMENT_DEVICE] = {COLUMN(TEXT, "device", "Device", "GPU and its ordinal")},
	[FRAGMENTATION_SEGMENT_ADDR] = {COLUMN(TEXT, "address", "Address", "address of the segment")},
	[FRAGMENTATION_SEGMENT_TYPE] = {COLUMN(TEXT, "type", "Type", "small or large")},
	[FRAGMENTATION_SEGMENT_EXPANDABLE] = {COLUMN(YES_NO, "expandable", "Expandable", "whether the segment grows and shrinks")},
	[FRAGMENTATION_SEGMENT_SIZE] = {COLUMN(BYTES, "size_bytes", "Size", "size of the segment")},
	[FRAGMENTATION_SEGMENT_ACTIVE] = {COLUMN(BYTES, "active_bytes", "In use", "size of the blocks that are in use, or wait for another stream")},
	[FRAGMENTATION_SEGMENT_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "number of these blocks")},
	[FRAGMENTATION_SEGMENT_FREE] = {COLUMN(BYTES, "free_bytes", "Free", "size of the free blocks")},
	[FRAGMENTATION_SEGMENT_FREE_BLOCKS] = {COLUMN(COUNT, "free_blocks", "Free Blocks", "number of free blocks")},
	[FRAGMENTATION_SEGMENT_LARGEST] = {COLUMN(BYTES, "largest_free_bytes", "Largest Free", "size of the largest free block")},
)};

static int64_t fragmentation_free(const struct fragmentation_segment *g)
{
	return g->sum.free[FRAGMENTATION_SPLIT] + g->sum.free[FRAGMENTATION_WHOLE] + g->sum.free[FRAGMENTATION_EXPANDABLE];
}

static int fragmentation_by_free(const void *a, const void *b)
{
	const struct fragmentation_segment *x = a, *y = b;
	return COMPARE(fragmentation_free(y), fragmentation_free(x)) ?: COMPARE(x->row, y->row);
}

static void fragmentation_put_segments(const struct fragmentation *f, struct table *t)
{
	const struct memory_segments *s = &f->p->memory_segment;
	qsort(f->segment, s->rows.n, sizeof *f->segment, fragmentation_by_free);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		const struct fragmentation_segment *g = &f->segment[i];
		table_row(t);
		table_set_fmt(t, FRAGMENTATION_SEGMENT_DEVICE, "GPU%d", s->device[g->row]);
		if (s->addr[g->row] != ID_NONE)
			table_set_fmt(t, FRAGMENTATION_SEGMENT_ADDR, "0x%llx", (unsigned long long)s->addr[g->row]);
		table_set_str(t, FRAGMENTATION_SEGMENT_TYPE, profile_str(f->p, s->type[g->row]));
		table_set_bool(t, FRAGMENTATION_SEGMENT_EXPANDABLE, g->expandable);
		table_set_i64(t, FRAGMENTATION_SEGMENT_SIZE, g->sum.reserved);
		table_set_i64(t, FRAGMENTATION_SEGMENT_ACTIVE, g->sum.active);
		table_set_i64(t, FRAGMENTATION_SEGMENT_BLOCKS, (int64_t)g->blocks);
		table_set_i64(t, FRAGMENTATION_SEGMENT_FREE, fragmentation_free(g));
		table_set_i64(t, FRAGMENTATION_SEGMENT_FREE_BLOCKS, (int64_t)g->sum.free_blocks);
		table_set_i64(t, FRAGMENTATION_SEGMENT_LARGEST, g->sum.largest_free);
	}
}

enum { FRAGMENTATION_STATE_DEVICE, FRAGMENTATION_STATE, FRAGMENTATION_STATE_BLOCKS, FRAGMENTATION_STATE_BYTES };

static const struct section fragmentation_state_section = {.name = "states", .title = "Blocks by state", COLUMNS(
	[FRAGMENTATION_STATE_DEVICE] = {COLUMN(TEXT, "device", "Device", "GPU and its ordinal")},
	[FRAGMENTATION_STATE] = {COLUMN(TEXT, "state", "State", "torch's name of the state: active_allocated, active_awaiting_free (freed, waits for another stream), inactive")},
	[FRAGMENTATION_STATE_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "number of blocks in this state")},
	[FRAGMENTATION_STATE_BYTES] = {COLUMN(BYTES, "bytes", "Size", "size of these blocks")},
)};

struct fragmentation_state {
	int32_t device;
	uint32_t state;
	uint64_t blocks;
	int64_t bytes;
};

static int fragmentation_by_state(const void *a, const void *b)
{
	const struct fragmentation_state *x = a, *y = b;
	return COMPARE(x->device, y->device) ?: COMPARE(y->bytes, x->bytes) ?: COMPARE(x->state, y->state);
}

static void fragmentation_put_states(const struct fragmentation *f, struct table *t)
{
	const struct memory_blocks *b = &f->p->memory_block;
	struct fragmentation_state *v = NULL;
	uint32_t n = 0, cap = 0;
	struct intern keys;
	intern_init(&keys);
	for (uint32_t i = 0; i < b->rows.n; i++) {
		struct { int32_t device; uint32_t state; } k = {f->p->memory_segment.device[b->segment[i]], b->state[i]};
		uint32_t before = keys.n, at = intern_put(&keys, (const char *)&k, sizeof k) - 1;
		if (keys.n > before)
			MEM_PUSH(v, n, cap, (struct fragmentation_state){.device = k.device, .state = k.state});
		v[at].blocks++;
		v[at].bytes += b->bytes[i];
	}
	if (n)
		qsort(v, n, sizeof *v, fragmentation_by_state);
	for (uint32_t i = 0; i < n; i++) {
		table_row(t);
		table_set_fmt(t, FRAGMENTATION_STATE_DEVICE, "GPU%d", v[i].device);
		table_set_str(t, FRAGMENTATION_STATE, profile_str(f->p, v[i].state));
		table_set_i64(t, FRAGMENTATION_STATE_BLOCKS, (int64_t)v[i].blocks);
		table_set_i64(t, FRAGMENTATION_STATE_BYTES, v[i].bytes);
	}
	intern_release(&keys);
	mem_free(v);
}

static void fragmentation_note(const struct fragmentation *f, struct table *t)
{
	int64_t rest = 0;
	for (uint32_t i = 0; i < f->p->memory_segment.rows.n; i++)
		rest += f->segment[i].sum.reserved - f->segment[i].sum.active - fragmentation_free(&f->segment[i]);
	table_note(t, "reserved = allocated + waiting + free (split, whole and expandable), at the moment of the snapshot");
	if (rest)
		table_warn(t, "the blocks of the snapshot do not add up to its segments: the difference is %lld bytes", (long long)rest);
}

static int fragmentation_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct fragmentation f = {.p = p};
	if (!p->memory_segment.rows.n)
		return err_set(e, ERR_DATA, "the input does not state the segments and blocks of the allocator: a file of torch.cuda.memory._dump_snapshot() does");
	intern_init(&f.keys);
	fragmentation_measure(&f);
	fragmentation_pools(&f);
	section_start(&fragmentation_section, args, 0, out);
	fragmentation_put_pools(&f, out);
	fragmentation_note(&f, out);
	struct table *segments = section_add(&fragmentation_segment_section, args, 0, out);
	fragmentation_put_segments(&f, segments);
	segments->folded = true;
	fragmentation_put_states(&f, section_add(&fragmentation_state_section, args, 0, out));
	intern_release(&f.keys);
	mem_free(f.segment);
	mem_free(f.v);
	return 0;
}

const struct report report_fragmentation = {
	.name = "fragmentation",
	.title = "Memory that the allocator holds, and in what pieces",
	.asks = ASKS_MEMORY,
	.also = "fragments segments reserved",
	.help = "How much of the memory that torch's allocator has taken from the driver is in use when a memory snapshot is taken, and in what pieces the rest is: between blocks in use, "
	        "where it serves only allocations that fit; in whole segments, which empty_cache() gives back; or in expandable segments. An allocation that is larger than the largest free block "
	        "of its pool takes new memory from the driver. It fails where the driver has none, although enough memory may be free in all. Sections: 'segments' (each segment), 'states' "
	        "(blocks by state). Needs a memory snapshot (torch.cuda.memory._dump_snapshot()).",
	.sections = (const struct section *const[]){&fragmentation_section, &fragmentation_segment_section, &fragmentation_state_section, NULL},
	.run = fragmentation_run,
};
