#include "analysis/memory/memory.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/saturate.h"
#include "detect/parts/shared.h"

static const double
	TOO_MUCH = 0.1,    /* share of what the allocator holds that was unused when no piece fitted: less is not told */
	NEARLY_FULL = 0.8; /* share of the device's memory that is held, from which it is low */
/* Unused when no piece fitted, and taken from the driver in all: less is not told. */
static const int64_t LEAST_BYTES = 256 << 20;
/* PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, kSmallSize) gives requests up to this from pieces of their own, and never from larger ones. */
static const int64_t SMALL_BYTES = 1 << 20;
static const double GIB = 1 << 30;

/* Of one device. An allocation did not fit when the allocator took new memory from the driver though it held as much unused. */
struct growth {
	bool known;                      /* an event with totals came before: */
	int64_t reserved, allocated;     /* its totals */
	uint64_t events;                 /* allocations that did not fit */
	int64_t grown_bytes;             /* what was taken for them */
	uint32_t worst;                  /* of these the row with most unused before it; its sizes: */
	int64_t worst_unused, worst_reserved;
	int64_t most;                    /* of what is held at a time */
};

/* Adds row i of *p->memory, which has totals, to its device. */
static void memory_fragmentation_add(const struct profile *p, uint32_t i, struct growth *g)
{
	int64_t reserved = p->memory.total_reserved[i], allocated = p->memory.total_allocated[i], unused, grown;
	bool sane = allocated >= 0 && reserved >= allocated;
	bool follows = sane && g->known && allocated - g->allocated == p->memory.bytes[i]; /* else events between are not recorded */
	if (follows && p->memory.bytes[i] > SMALL_BYTES) {
		unused = g->reserved - g->allocated;
		grown = reserved - g->reserved;
		if (grown > 0 && unused >= grown && unused >= p->memory.bytes[i]) {
			g->events++;
			if (__builtin_add_overflow(g->grown_bytes, grown, &g->grown_bytes))
				g->grown_bytes = INT64_MAX;
			if (unused > g->worst_unused) {
				g->worst_unused = unused;
				g->worst_reserved = g->reserved;
				g->worst = i;
			}
		}
	}
	g->most = reserved > g->most ? reserved : g->most;
	g->known = sane;
	g->reserved = reserved;
	g->allocated = allocated;
}

static void memory_fragmentation_report(const struct profile *p, struct findings *f, uint32_t device, const struct growth *g)
{
	int64_t total = p->device.memory_bytes[device], peak = g->most;
	bool matters = total > 0 && (double)peak >= NEARLY_FULL * (double)total;
	struct finding *x = findings_add(f, matters ? FINDING_LOW : FINDING_INFO);
	struct buf b = {0};
	x->problem = arena_printf(&f->arena, "Memory of GPU %d is held in pieces that do not fit: the allocator took %.2f GiB more in all, once while %.2f of the %.2f GiB "
	                          "that it held were unused",
	                          p->device.id[device], (double)g->grown_bytes / GIB, (double)g->worst_unused / GIB, (double)g->worst_reserved / GIB);
	buf_printf(&b, "%llu allocation%s took new memory from the driver while as much was held unused; most was unused before one of %.2f MiB; at most %.2f GiB were held",
	           (unsigned long long)g->events, g->events == 1 ? "" : "s", (double)p->memory.bytes[g->worst] / (1 << 20), (double)peak / GIB);
	if (total > 0)
		buf_printf(&b, " of the GPU's %.2f GiB", (double)total / GIB);
	x->evidence = arena_str(&f->arena, buf_view(&b));
	buf_release(&b);
	x->has_events = x->has_share = x->has_window = true;
	x->events = g->events;
	x->share_pct = 100.0 * (double)g->worst_unused / (double)g->worst_reserved;
	x->from_ns = x->to_ns = p->memory.time_ns[g->worst];
}

/* ---- a memory snapshot: the blocks of each segment ---- */

/* Of one device. */
struct split {
	int32_t device;
	int64_t held;            /* bytes: size of its segments */
	int64_t bytes, largest;  /* of the free blocks between blocks in use: all of them, and the largest */
	uint64_t pieces;         /* how many they are */
};

struct splits {
	struct idmap of_device;  /* index in v */
	struct split *v;
	uint32_t n, cap;
};

static struct split *memory_fragmentation_of(struct splits *x, int32_t device)
{
	uint32_t at = idmap_get(&x->of_device, device);
	if (at == IDMAP_NONE) {
		at = x->n;
		idmap_put(&x->of_device, device, at);
		MEM_PUSH(x->v, x->n, x->cap, (struct split){.device = device});
	}
	return &x->v[at];
}

static void memory_fragmentation_report_split(struct findings *f, const struct split *x)
{
	struct finding *found = findings_add(f, FINDING_INFO);
	found->problem = arena_printf(&f->arena, "%.2f of the %.2f GiB that the allocator of GPU %d held at the snapshot were free in %llu pieces between blocks in use, the largest of %.1f MiB",
	                              (double)x->bytes / GIB, (double)x->held / GIB, x->device, (unsigned long long)x->pieces, (double)x->largest / (1 << 20));
	found->evidence = STR("The segments and blocks that the memory snapshot states. A larger tensor takes new memory from the driver, whatever is free in all");
	found->report = "fragmentation";
	found->has_events = found->has_share = true;
	found->events = x->pieces;
	found->share_pct = 100.0 * (double)x->bytes / (double)x->held;
}

static bool memory_fragmentation_in_use(const struct profile *p, uint32_t block)
{
	return str_starts(profile_str(p, p->memory_block.state[block]), STR("active"));
}

/* Of a CUDA graph, which alone may use what is free in it. */
static bool memory_fragmentation_is_private(const struct profile *p, uint32_t segment)
{
	const struct str pool = profile_str(p, p->memory_segment.pool[segment]);
	return pool.n && !str_eqc(pool, "(0, 0)");
}

/* A segment without a block in use goes back to the driver when memory runs out, and so do the free pages of an expandable one. */
static void memory_fragmentation_snapshot(const struct profile *p, struct findings *f)
{
	const struct memory_segments *s = &p->memory_segment;
	const struct memory_blocks *b = &p->memory_block;
	bool *used = NEW_ARRAY(s->rows.n, bool);
	struct splits all = {.n = 0};
	idmap_init(&all.of_device, INT32_MIN, INT32_MAX, s->rows.n);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		struct split *x = memory_fragmentation_of(&all, s->device[i]);
		add_saturated(&x->held, s->total_bytes[i]);
	}
	for (uint32_t i = 0; i < b->rows.n; i++)
		used[b->segment[i]] |= memory_fragmentation_in_use(p, i);
	for (uint32_t i = 0; i < b->rows.n; i++) {
		const uint32_t at = b->segment[i];
		if (!used[at] || s->expandable[at] || memory_fragmentation_is_private(p, at) || memory_fragmentation_in_use(p, i) || b->bytes[i] <= 0)
			continue;
		struct split *x = memory_fragmentation_of(&all, s->device[at]);
		add_saturated(&x->bytes, b->bytes[i]);
		x->largest = b->bytes[i] > x->largest ? b->bytes[i] : x->largest;
		x->pieces++;
	}
	for (uint32_t i = 0; i < all.n; i++) {
		const struct split *x = &all.v[i];
		const int64_t spread = x->bytes - x->largest; /* free bytes that are not in the largest piece */
		if (x->bytes <= x->held && spread >= LEAST_BYTES && (double)spread >= TOO_MUCH * (double)x->held)
			memory_fragmentation_report_split(f, x);
	}
	idmap_release(&all.of_device);
	mem_free(all.v);
	mem_free(used);
}

/* ---- a recording: what each allocation says that the allocator holds ---- */

static void memory_fragmentation_events(const struct profile *p, struct findings *f)
{
	uint32_t n = p->device.rows.n;
	struct growth *of = NEW_ARRAY(n, struct growth);
	bool totals = false, events = false, too_many = false;
	for (uint32_t i = 0; i < p->memory.rows.n; i++) {
		int device = memory_device(p, i);
		uint32_t row = device == MEMORY_CPU || !memory_is_event(p, i) ? ROW_NONE : profile_device_row(p, device);
		if (row == ROW_NONE)
			continue;
		events = true;
		if (!memory_has_totals(p, i) || p->memory.total_reserved[i] == ID_NONE)
			continue;
		totals = true;
		memory_fragmentation_add(p, i, &of[row]);
	}
	for (uint32_t d = 0; d < n; d++) {
		const struct growth *g = &of[d];
		bool more = p->device.memory_bytes[d] > 0 && g->most > p->device.memory_bytes[d];
		too_many |= more;
		if (!more && g->grown_bytes >= LEAST_BYTES && g->worst_unused >= LEAST_BYTES && (double)g->worst_unused >= TOO_MUCH * (double)g->worst_reserved)
			memory_fragmentation_report(p, f, d, g);
	}
	if (!events)
		findings_missing(f, "no [memory] events of a GPU");
	else if (!totals)
		findings_missing(f, "the [memory] events do not say how much the allocator holds");
	else if (too_many)
		findings_missing(f, "by its [memory] events the allocator holds more than the GPU's memory");
	mem_free(of);
}

static void memory_fragmentation_run(const struct profile *p, struct findings *f)
{
	if (p->memory_segment.rows.n)
		memory_fragmentation_snapshot(p, f);
	else if (shared_has(f, DETECT_DEVICE_WORK))
		memory_fragmentation_events(p, f);
}

const struct detector detector_memory_fragmentation = {
	.id = "memory-fragmentation",
	.title = "GPU memory is fragmented",
	.why = "The allocator keeps freed memory for the next tensor. Where no free piece is large enough it takes more from the driver, until a tensor fails "
	       "to fit although enough memory is free in total.",
	.fix = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which joins pieces; keep shapes the same (pad to a few lengths); allocate the largest batch first.",
	.disprove = "The unused memory is of a pool that these allocations may not use: of another stream or of a CUDA graph. torch.cuda.memory_snapshot() tells.",
	.report = "memory",
	.run = memory_fragmentation_run,
};
