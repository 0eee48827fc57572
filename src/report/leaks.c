/* Blocks that are not freed, by the code that allocated them. */
#include "analysis/memory/memory.h"
#include "analysis/memory/memory_owners.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/window.h"

#include <stdio.h>
#include <stdlib.h>

enum leaks_grouping { LEAKS_BY_OWNER, LEAKS_BY_OP, LEAKS_BY_LINE, LEAKS_BY_MODULE };

enum leaks_since { LEAKS_IN, LEAKS_BEFORE, LEAKS_SINCES };
static const char *const leaks_since_name[LEAKS_SINCES] = {"in the recording", "before it"};

struct leaks_key {
	struct memory_owner owner; /* parts that the grouping does not ask for are 0 */
	uint32_t since;
};

struct leaks_group {
	struct leaks_key key;
	uint64_t blocks, allocations;
	int64_t bytes, largest;
	int64_t first_ns, last_ns; /* first and last allocation of a block that is not freed; INT64_MAX, INT64_MIN = none recorded */
};

struct leaks {
	const struct profile *p;
	struct memory_owners *owners;
	enum leaks_grouping by;
	int device;
	struct intern keys;
	struct leaks_group *v;
	uint32_t n, cap;
	int64_t bytes, waiting_bytes; /* of blocks that are held; of freed blocks that wait for another stream */
	uint64_t waiting;
	bool snapshot;
};

static struct leaks_group *leaks_at(struct leaks *l, struct memory_owner w, enum leaks_since since)
{
	struct leaks_key k = {w, since};
	if (l->by == LEAKS_BY_OP || l->by == LEAKS_BY_LINE)
		k.owner.module = 0;
	if (l->by == LEAKS_BY_OP || l->by == LEAKS_BY_MODULE)
		k.owner.line = 0;
	if (l->by == LEAKS_BY_LINE || l->by == LEAKS_BY_MODULE)
		k.owner.op = 0;
	uint32_t before = l->keys.n, at = intern_put(&l->keys, (const char *)&k, sizeof k) - 1;
	if (l->keys.n > before)
		MEM_PUSH(l->v, l->n, l->cap, (struct leaks_group){.key = k, .first_ns = INT64_MAX, .last_ns = INT64_MIN});
	return &l->v[at];
}

/* Adds a block that is held at the end. alloc: the row that allocated the block; ROW_NONE = no row did. */
static void leaks_add(struct leaks *l, struct memory_owner w, enum leaks_since since, int64_t bytes, uint32_t alloc)
{
	struct leaks_group *g = leaks_at(l, w, since);
	g->blocks++;
	g->bytes += bytes;
	g->largest = bytes > g->largest ? bytes : g->largest;
	l->bytes += bytes;
	if (alloc == ROW_NONE)
		return;
	int64_t at = l->p->memory.time_ns[alloc];
	g->first_ns = at < g->first_ns ? at : g->first_ns;
	g->last_ns = at > g->last_ns ? at : g->last_ns;
}

/* By the blocks of a snapshot, which has all that are held, whether their allocations were recorded or not. */
static void leaks_of_snapshot(struct leaks *l)
{
	const struct profile *p = l->p;
	struct memory_live *live;
	uint32_t n = memory_live(p, l->device, &live);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t block = live[i].block, alloc = live[i].alloc;
		if (memory_block_waits(p, block)) {
			l->waiting++;
			l->waiting_bytes += p->memory_block.bytes[block];
			continue;
		}
		struct memory_owner w = alloc != ROW_NONE ? memory_owner_of(l->owners, alloc) : memory_owner_by_stack(l->owners, p->memory_block.args[block]);
		leaks_add(l, w, alloc != ROW_NONE ? LEAKS_IN : LEAKS_BEFORE, p->memory_block.bytes[block], alloc);
	}
	mem_free(live);
}

/* The bytes that the allocator had given to the program after the last event of the device; -1 = not recorded. */
static int64_t leaks_end_total(const struct leaks *l)
{
	const struct memories *m = &l->p->memory;
	for (uint32_t i = m->rows.n; i-- > 0;)
		if (memory_device(l->p, i) == l->device && memory_is_event(l->p, i))
			return memory_has_totals(l->p, i) && m->total_allocated[i] >= 0 ? m->total_allocated[i] : -1;
	return -1;
}

/* By the events: blocks that are allocated and not freed. What the allocator's total has beyond them was held before the recording. */
static void leaks_of_events(struct leaks *l)
{
	const struct memories *m = &l->p->memory;
	struct memory_pair *pair;
	uint32_t n = memory_pairs(l->p, l->device, &pair);
	for (uint32_t i = 0; i < n; i++)
		if (pair[i].alloc != ROW_NONE && pair[i].release == ROW_NONE)
			leaks_add(l, memory_owner_of(l->owners, pair[i].alloc), LEAKS_IN, m->bytes[pair[i].alloc], pair[i].alloc);
	mem_free(pair);
	int64_t total = leaks_end_total(l), rest;
	if (total < 0 || __builtin_sub_overflow(total, l->bytes, &rest) || rest <= 0)
		return;
	struct leaks_group *g = leaks_at(l, (struct memory_owner){0}, LEAKS_BEFORE);
	g->bytes += rest;
	l->bytes += rest;
}

/* Counts the allocations of each owner, freed or not. */
static void leaks_count(struct leaks *l)
{
	const struct memories *m = &l->p->memory;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (m->bytes[i] <= 0 || memory_device(l->p, i) != l->device || !memory_is_event(l->p, i))
			continue;
		struct leaks_group *g = leaks_at(l, memory_owner_of(l->owners, i), LEAKS_IN);
		g->allocations++;
	}
}

static int leaks_by_bytes(const void *a, const void *b)
{
	const struct leaks_group *x = a, *y = b;
	return COMPARE(y->bytes, x->bytes) ?: memcmp(&x->key, &y->key, sizeof x->key);
}

enum {
	LEAKS_DEVICE, LEAKS_OPERATOR, LEAKS_LINE, LEAKS_MODULE, LEAKS_SINCE, LEAKS_BYTES, LEAKS_SHARE, LEAKS_BLOCKS, LEAKS_LARGEST, LEAKS_ALLOCATIONS, LEAKS_FIRST, LEAKS_LAST
};

static const struct section leaks_section = {COLUMNS(
	[LEAKS_DEVICE] = {COLUMN(TEXT, "device", "Device", "CPU or GPU and its ordinal")},
	[LEAKS_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "innermost op around the allocation; where this is aten::empty or its kin, the op around it. In a memory snapshot: the "
	                           "innermost op in the C++ frames, where these were recorded, with its overload", .flags = COLUMN_ANSWER), .by = BY(LEAKS_BY_OWNER) | BY(LEAKS_BY_OP)},
	[LEAKS_LINE] = {COLUMN(TEXT, "line", "Line", "innermost line of the user's own code around the allocation", .flags = COLUMN_PATH), .by = BY(LEAKS_BY_OWNER) | BY(LEAKS_BY_LINE),
	                .when = WHEN_STACKS},
	[LEAKS_MODULE] = {COLUMN(TEXT, "module", "Module", "layer or module around the allocation. In a memory snapshot, which does not name modules: the calls of forward() around the allocation that are not "
	                         "torch's, outermost first", .flags = COLUMN_PATH), .by = BY(LEAKS_BY_OWNER) | BY(LEAKS_BY_MODULE), .when = WHEN_RECORDED},
	[LEAKS_SINCE] = {COLUMN(TEXT, "since", "Since", "whether the blocks were allocated in the recording or before it", .flags = COLUMN_ANSWER)},
	[LEAKS_BYTES] = {COLUMN(BYTES, "bytes", "Not Freed", "bytes held at the end; in a memory snapshot as the allocator rounded them up, else as recorded", .flags = COLUMN_ANSWER)},
	[LEAKS_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "these bytes / all bytes held at the end")},
	[LEAKS_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "blocks that are not freed; 0 = the number is not known")},
	[LEAKS_LARGEST] = {COLUMN(BYTES, "largest_bytes", "Largest", "size of the largest of these blocks")},
	[LEAKS_ALLOCATIONS] = {COLUMN(COUNT, "allocations", "Allocated", "blocks that were allocated here in the recording, freed or not: if most of many blocks are not freed, something keeps them")},
	[LEAKS_FIRST] = {COLUMN(NS, "first_ns", "First", "first allocation of a block that is not freed, as time since the start of the trace")},
	[LEAKS_LAST] = {COLUMN(NS, "last_ns", "Last", "last allocation of a block that is not freed: if it is near the end of a long recording, memory may still grow")},
)};

static void leaks_put_text(const struct leaks *l, struct table *t, unsigned col, uint32_t id)
{
	if (id)
		table_set_str_copy(t, col, memory_owner_text(l->owners, id));
}

static void leaks_put(const struct leaks *l, const char *device, struct table *t)
{
	int64_t zero_ns = memory_zero_ns(l->p);
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, leaks_by_bytes);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct leaks_group *g = &l->v[i];
		if (!g->bytes)
			continue;
		table_row(t);
		table_set_fmt(t, LEAKS_DEVICE, "%s", device);
		leaks_put_text(l, t, LEAKS_OPERATOR, g->key.owner.op);
		leaks_put_text(l, t, LEAKS_LINE, g->key.owner.line);
		leaks_put_text(l, t, LEAKS_MODULE, g->key.owner.module);
		table_set_str(t, LEAKS_SINCE, str_from(leaks_since_name[g->key.since]));
		table_set_i64(t, LEAKS_BYTES, g->bytes);
		table_set_f64(t, LEAKS_SHARE, percent((double)g->bytes, (double)l->bytes));
		table_set_i64(t, LEAKS_BLOCKS, (int64_t)g->blocks);
		if (g->blocks)
			table_set_i64(t, LEAKS_LARGEST, g->largest);
		table_set_i64(t, LEAKS_ALLOCATIONS, (int64_t)g->allocations);
		if (g->first_ns <= g->last_ns) {
			table_set_i64(t, LEAKS_FIRST, g->first_ns - zero_ns);
			table_set_i64(t, LEAKS_LAST, g->last_ns - zero_ns);
		}
	}
}

static uint64_t leaks_without_address(const struct leaks *l)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < l->p->memory.rows.n; i++)
		n += l->p->memory.addr[i] == ID_NONE && memory_device(l->p, i) == l->device && memory_is_event(l->p, i);
	return n;
}

static void leaks_note(const struct leaks *l, const char *device, struct table *t)
{
	int64_t of[LEAKS_SINCES] = {0}, unknown = 0;
	uint64_t without_address = leaks_without_address(l);
	bool whole = l->snapshot || leaks_end_total(l) >= 0;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct leaks_key *k = &l->v[i].key;
		of[k->since] += l->v[i].bytes;
		unknown += k->owner.op || k->owner.line || k->owner.module ? 0 : l->v[i].bytes;
	}
	if (without_address)
		table_warn(t, "%s: memory events without an address: %llu. Their blocks cannot be followed (torch 1.10 and later record addresses)", device, (unsigned long long)without_address);
	if (!whole)
		table_warn(t, "%s: the allocator's total was not recorded: what was held before the recording is not in the table", device);
	else
		table_note(t, "%s: %lld bytes held at the end = allocated in the recording %lld + before it %lld", device, (long long)l->bytes, (long long)of[LEAKS_IN],
		           (long long)of[LEAKS_BEFORE]);
	if (unknown && l->by == LEAKS_BY_OWNER)
		table_note(t, "%s: what allocated %lld of these bytes is not known: rows without operator, line and module", device, (long long)unknown);
	table_note(t, "memory that is held at the end need not be a leak: parameters, optimizer state and caches stay. Memory that grows from one step to the next does not belong there");
	if (l->waiting)
		table_note(t, "%s: freed blocks that wait for another stream are not in the table: %llu, of %lld bytes in all", device, (unsigned long long)l->waiting, (long long)l->waiting_bytes);
}

static int leaks_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct leaks l = {.p = p, .by = (enum leaks_grouping)args->variant->by, .snapshot = p->memory_block.rows.n > 0};
	char device[24] = "CPU";
	if (!p->memory.rows.n && !l.snapshot)
		return err_set(e, ERR_DATA, "the input holds no memory events; to record them: %s", recording_how(p, RECORD_MEMORY));
	if (memory_device_choose(p, args->device, &l.device, e) < 0)
		return -1;
	if (l.device != MEMORY_CPU)
		snprintf(device, sizeof device, "GPU%d", l.device);
	intern_init(&l.keys);
	l.owners = memory_owners_new(p);
	section_start(&leaks_section, args, (memory_owners_have_lines(l.owners) ? WHEN_STACKS : 0) | (memory_owners_have_modules(l.owners) ? WHEN_RECORDED : 0), out);
	if (l.snapshot)
		leaks_of_snapshot(&l);
	else
		leaks_of_events(&l);
	leaks_count(&l);
	leaks_put(&l, device, out);
	leaks_note(&l, device, out);
	memory_owners_free(l.owners);
	intern_release(&l.keys);
	mem_free(l.v);
	return 0;
}

static const struct report_variant leaks_variants[] = {
	{.group_by = "owner", .by = LEAKS_BY_OWNER},
	{.group_by = "op", .by = LEAKS_BY_OP},
	{.group_by = "line", .by = LEAKS_BY_LINE},
	{.group_by = "module", .by = LEAKS_BY_MODULE},
	{0},
};

const struct report report_leaks = {
	.name = "leaks",
	.title = "Memory that is not freed",
	.asks = ASKS_MEMORY,
	.also = "leak leaked unfreed",
	.help = "Which blocks of one device (--device=cpu or a GPU ordinal; default: the first GPU that has memory events) are still held when the recording ends, by the op, the line of "
	        "Python and the module that allocated them, and which of these blocks were held before the recording. A row need not be a leak: parameters and optimizer state stay. Where many of the "
	        "blocks that a line allocated are not freed, and the last of them is late, something keeps them. A memory snapshot "
	        "(torch.cuda.memory._record_memory_history(), then _dump_snapshot()) answers best, since it has the stack of each allocation; a trace with profile_memory=True answers, too.",
	.variants = leaks_variants,
	.sections = (const struct section *const[]){&leaks_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = REPORT_DEVICE,
	.run = leaks_run,
};
