#include "analysis/memory/memory_categories.h"

#include "analysis/analysis.h"
#include "analysis/memory/memory.h"
#include "analysis/memory/memory_held.h"
#include "analysis/memory/memory_places.h"
#include "analysis/memory/memory_storages.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

const char *const memory_category_name[MEMORY_CATEGORIES] = {
	[MEMORY_PARAMETER] = "PARAMETER", [MEMORY_OPTIMIZER_STATE] = "OPTIMIZER_STATE", [MEMORY_INPUT] = "INPUT",
	[MEMORY_TEMPORARY] = "TEMPORARY", [MEMORY_ACTIVATION] = "ACTIVATION", [MEMORY_GRADIENT] = "GRADIENT",
	[MEMORY_AUTOGRAD_DETAIL] = "AUTOGRAD_DETAIL", [MEMORY_UNKNOWN] = "Unknown",
};

const char *const memory_why_text[MEMORY_WHYS] = {
	[MEMORY_KNOWN] = "",
	[MEMORY_WHY_WORKSPACE] = "allocated and freed inside one op without a sign of a tensor: a library's workspace",
	[MEMORY_WHY_OPTIMIZER] = "intermediate values of the optimizer's step",
	[MEMORY_WHY_OUTSIDE] = "allocated outside of any op",
	[MEMORY_WHY_NO_TENSOR] = "made by an op without tensor arguments and not kept for a backward pass",
	[MEMORY_WHY_COPIED] = "copied from the host and never freed: a batch or a parameter",
	[MEMORY_WHY_OUTLIVES] = "made in the backward pass and held beyond it, but no gradient has that size",
	[MEMORY_WHY_BEFORE] = "held since before the recording",
	[MEMORY_WHY_NO_ADDRESS] = "the trace has no addresses, so that no block can be followed",
	[MEMORY_WHY_STATED] = "so called by the recorder",
	[MEMORY_WHY_BUFFER] = "a buffer of a module, which is none of the categories",
	[MEMORY_WHY_FORWARD] = "taken by ops outside of the optimizer alone: an input, a buffer or a frozen parameter",
	[MEMORY_WHY_PROGRAM] = "a tensor of the program that is no parameter, gradient, optimizer state or argument of a module",
};

struct memory_categories_work {
	const struct profile *p;
	struct memory_timeline *t;
	struct memory_places places;
	struct memory_held held;
	bool sized;              /* shapes were recorded */
	uint32_t *around;        /* per memory row */
	struct memory_pair *pair;
	uint32_t n_pairs;
	uint8_t *category, *why; /* per memory row: of the block that it allocates or frees */
	uint32_t cap;
	struct memory_change *freed; /* of what the program held before, by time: frees without a record */
	uint32_t n_freed, cap_freed;
};

struct verdict {
	enum memory_category category;
	enum memory_why why;
};

static struct verdict known(enum memory_category c) { return (struct verdict){c, MEMORY_KNOWN}; }
static struct verdict memory_categories_unknown(enum memory_why w) { return (struct verdict){MEMORY_UNKNOWN, w}; }

static struct memory_place memory_categories_place_of(const struct memory_categories_work *w, uint32_t row)
{
	if (row == ROW_NONE || w->around[row] == ROW_NONE)
		return (struct memory_place){ROW_NONE, ROW_NONE, ROW_NONE, ROW_NONE};
	return w->places.of_span[w->around[row]];
}

/* Freed at or after the end of the range, or not at all. */
static bool held_beyond(const struct memory_categories_work *w, const struct memory_pair *k, int64_t end_ns)
{
	return k->release == ROW_NONE || w->p->memory.time_ns[k->release] >= end_ns;
}

static bool takes_tensor(const struct memory_categories_work *w, uint32_t span, int64_t bytes)
{
	uint32_t set = w->p->span.args[span];
	return ANY_WHERE(i, w->places.first[set], w->places.first[set + 1], memory_fits(bytes, w->places.bytes[i]));
}

/* What fills or copies a new tensor comes right after; empty_like has the size of its source, which says nothing. */
enum { OPS_LOOKED_AT = 64, RANGES_LOOKED_AT = 1024 };

static bool used_as_tensor(const struct memory_categories_work *w, const struct memory_pair *k, uint32_t call)
{
	const struct spans *s = &w->p->span;
	int64_t from = w->p->memory.time_ns[k->alloc], to = w->p->memory.time_ns[k->release];
	uint32_t op = w->p->memory.span[k->alloc];
	if (op == ROW_NONE || !str_starts(profile_str(w->p, s->name[op]), STR("aten::empty")))
		return false;
	uint32_t seen = 0, end = s->rows.n - op > RANGES_LOOKED_AT ? op + RANGES_LOOKED_AT : s->rows.n;
	for (uint32_t i = op + 1; i < end && s->track[i] == s->track[call] && s->start_ns[i] <= to; i++) {
		if (s->kind[i] != SPAN_OP || s->start_ns[i] < from)
			continue;
		if (seen++ == OPS_LOOKED_AT)
			return false;
		if (takes_tensor(w, i, w->p->memory.bytes[k->alloc]) && !str_eqc(profile_str(w->p, s->name[i]), "aten::empty_like"))
			return true;
	}
	return false;
}

static struct verdict of_backward(const struct memory_categories_work *w, const struct memory_pair *k, uint32_t engine)
{
	uint32_t pass = w->places.pass[engine];
	if (!held_beyond(w, k, w->places.pass_end_ns[pass]) || memory_categories_place_of(w, k->release).engine != ROW_NONE)
		return known(MEMORY_AUTOGRAD_DETAIL);
	if (!w->places.gradients_sized || memory_places_has_gradient(&w->places, pass, w->p->memory.bytes[k->alloc]))
		return known(MEMORY_GRADIENT);
	return memory_categories_unknown(MEMORY_WHY_OUTLIVES);
}

/* Where shapes were recorded, the arguments say whether an op takes tensors; else its name does: one that makes a tensor of nothing takes none. */
static bool takes_tensors(const struct memory_categories_work *w, uint32_t call)
{
	static const char *const makers[] = {"aten::zeros", "aten::ones", "aten::rand", "aten::full", "aten::empty", "aten::arange", "aten::eye", "aten::linspace",
		                             "aten::logspace", "aten::scalar_tensor", "aten::tril_indices", "aten::triu_indices", "aten::new_"};
	uint32_t set = w->p->span.args[call];
	if (w->sized)
		return w->places.first[set] != w->places.first[set + 1];
	return !ANY_WHERE(i, 0, sizeof makers / sizeof makers[0], str_starts(profile_str(w->p, w->p->span.name[call]), str_from(makers[i])));
}

static struct verdict of_forward(const struct memory_categories_work *w, const struct memory_pair *k, uint32_t call)
{
	if (w->t->device != MEMORY_CPU && w->places.from_host[call])
		return k->release == ROW_NONE ? memory_categories_unknown(MEMORY_WHY_COPIED) : known(MEMORY_INPUT);
	if (takes_tensors(w, call))
		return known(MEMORY_ACTIVATION);
	return memory_categories_place_of(w, k->release).engine != ROW_NONE ? known(MEMORY_INPUT) : memory_categories_unknown(MEMORY_WHY_NO_TENSOR);
}

static struct verdict of_held(enum memory_held_kind kind)
{
	switch (kind) {
	case HELD_PARAMETER:
		return known(MEMORY_PARAMETER);
	case HELD_GRADIENT:
		return known(MEMORY_GRADIENT);
	case HELD_OPTIMIZER_STATE:
		return known(MEMORY_OPTIMIZER_STATE);
	case HELD_INPUT:
		return known(MEMORY_INPUT);
	case HELD_BUFFER:
		return memory_categories_unknown(MEMORY_WHY_BUFFER);
	case HELD_TENSOR:
		return memory_categories_unknown(MEMORY_WHY_PROGRAM);
	case HELD_NOTHING:
		break;
	}
	return memory_categories_unknown(MEMORY_WHY_BEFORE);
}

/* What the program said of the block while it was alive. */
static enum memory_held_kind held_kind_of(const struct memory_categories_work *w, const struct memory_pair *k)
{
	const struct memories *m = &w->p->memory;
	uint32_t row = k->alloc == ROW_NONE ? k->release : k->alloc;
	if (m->bytes[row] == INT64_MIN)
		return HELD_NOTHING;
	int64_t bytes = m->bytes[row] < 0 ? -m->bytes[row] : m->bytes[row];
	return memory_held_kind_of(&w->held, m->addr[row], bytes, k->alloc == ROW_NONE ? INT64_MIN : m->time_ns[k->alloc],
	                           k->release == ROW_NONE ? INT64_MAX : m->time_ns[k->release]);
}

/* By its place in the step. */
static struct verdict of_place(const struct memory_categories_work *w, const struct memory_pair *k)
{
	struct memory_place at = memory_categories_place_of(w, k->alloc);
	if (at.call != ROW_NONE && !held_beyond(w, k, span_end(w->p, at.call)))
		return used_as_tensor(w, k, at.call) ? known(MEMORY_TEMPORARY) : memory_categories_unknown(MEMORY_WHY_WORKSPACE);
	if (at.engine != ROW_NONE)
		return of_backward(w, k, at.engine);
	if (at.optimizer != ROW_NONE)
		return held_beyond(w, k, span_end(w->p, at.optimizer)) ? known(MEMORY_OPTIMIZER_STATE) : memory_categories_unknown(MEMORY_WHY_OPTIMIZER);
	if (at.loader != ROW_NONE && held_beyond(w, k, span_end(w->p, at.loader)))
		return known(MEMORY_INPUT);
	return at.call == ROW_NONE ? memory_categories_unknown(MEMORY_WHY_OUTSIDE) : of_forward(w, k, at.call);
}

static struct verdict judge(const struct memory_categories_work *w, const struct memory_pair *k)
{
	enum memory_held_kind kind = held_kind_of(w, k);
	if (k->alloc == ROW_NONE || kind >= HELD_INPUT)
		return of_held(kind);
	struct verdict v = of_place(w, k);
	return v.category == MEMORY_UNKNOWN && kind != HELD_NOTHING ? of_held(kind) : v;
}

static void memory_categories_count_unknown(struct memory_timeline *t, enum memory_why why, int64_t bytes)
{
	t->unknown_blocks[why]++;
	if (__builtin_add_overflow(t->unknown_bytes[why], bytes, &t->unknown_bytes[why]))
		t->unknown_bytes[why] = INT64_MAX;
}

static void judge_blocks(struct memory_categories_work *w)
{
	const struct memories *m = &w->p->memory;
	w->n_pairs = memory_pairs(w->p, w->t->device, &w->pair);
	for (uint32_t i = 0; i < w->n_pairs; i++) {
		const struct memory_pair *k = &w->pair[i];
		struct verdict v = judge(w, k);
		uint32_t row[2] = {k->alloc, k->release};
		for (int j = 0; j < 2; j++) {
			if (row[j] == ROW_NONE)
				continue;
			w->category[row[j]] = (uint8_t)v.category;
			w->why[row[j]] = (uint8_t)v.why;
		}
		w->t->blocks[v.category] += k->alloc != ROW_NONE;
		if (v.why && k->alloc != ROW_NONE)
			memory_categories_count_unknown(w->t, v.why, m->bytes[k->alloc]);
	}
}

static void add_change(struct memory_categories_work *w, int64_t time_ns, int64_t bytes, enum memory_action a, struct verdict v)
{
	struct memory_timeline *t = w->t;
	MEM_PUSH(t->change, t->n, w->cap, (struct memory_change){time_ns, bytes, (uint8_t)a, (uint8_t)v.category, (uint8_t)v.why});
}

static void add_before(struct memory_categories_work *w, int64_t bytes, struct verdict v)
{
	add_change(w, -1, bytes, MEMORY_PREEXISTING, v);
	w->t->n_before++;
	if (v.why)
		memory_categories_count_unknown(w->t, v.why, bytes);
}

/* The same of what is not freed in the recording either. */
static void add_kept(struct memory_categories_work *w, int64_t bytes, struct verdict v)
{
	add_before(w, bytes, v);
	if (__builtin_add_overflow(w->t->kept_of[v.category], bytes, &w->t->kept_of[v.category]))
		w->t->kept_of[v.category] = INT64_MAX;
}

static bool memory_categories_on_device(const struct profile *p, uint32_t i, int device)
{
	return memory_device(p, i) == device && memory_is_event(p, i);
}

/* Sizes of the blocks that are never freed, those of gradients and of the optimizer left out: they are no parameters. */
static int64_t *kept_sizes(const struct memory_categories_work *w, uint32_t *n)
{
	int64_t *size = NEW_ARRAY_RAW(w->n_pairs, int64_t);
	*n = 0;
	for (uint32_t i = 0; i < w->n_pairs; i++) {
		uint32_t row = w->pair[i].alloc;
		if (row == ROW_NONE || w->pair[i].release != ROW_NONE || memory_categories_place_of(w, row).engine != ROW_NONE ||
		    w->category[row] == MEMORY_OPTIMIZER_STATE)
			continue;
		size[(*n)++] = w->p->memory.bytes[row];
	}
	sort_i64(size, *n);
	return size;
}

/* Of ascending numbers. */
static bool has_number(const int64_t *size, uint32_t n, int64_t wanted)
{
	uint32_t low = FIRST_WHERE(i, 0, n, size[i] >= wanted);
	return low < n && size[low] == wanted;
}

/* memory_fits() of any of them: the tensor's size, or rounded up. */
static bool kept_fits(const int64_t *size, uint32_t n, int64_t tensor)
{
	int64_t rounded = tensor > 0 && tensor < INT64_MAX - 512 ? (tensor + 511) / 512 * 512 : tensor;
	return tensor > 0 && (has_number(size, n, tensor) || has_number(size, n, rounded));
}

/* All gradients that were allocated are on this device, and there are some. */
static bool has_the_gradients(const struct memory_categories_work *w)
{
	const struct memories *m = &w->p->memory;
	bool here = w->t->blocks[MEMORY_GRADIENT] > 0;
	for (uint32_t i = 0; here && i < m->rows.n; i++) {
		if (m->bytes[i] <= 0 || !memory_is_event(w->p, i) || memory_device(w->p, i) == w->t->device)
			continue;
		struct memory_place at = memory_categories_place_of(w, i);
		here = at.engine == ROW_NONE || !memory_places_has_gradient(&w->places, w->places.pass[at.engine], m->bytes[i]);
	}
	return here;
}

/* The pass that took most: first and last gradient of it. False when a sum leaves 64 bits. */
static bool largest_pass(const struct memory_places *m, uint32_t *from, uint32_t *to)
{
	int64_t best = -1;
	for (uint32_t i = 0, next; i < m->n_gradients; i = next) {
		int64_t sum = 0;
		for (next = i; next < m->n_gradients && m->gradient[next].pass == m->gradient[i].pass; next++)
			if (__builtin_add_overflow(sum, m->gradient[next].bytes, &sum))
				return false;
		if (sum > best) {
			best = sum;
			*from = i;
			*to = next;
		}
	}
	return best > 0;
}

/* `room`: bytes held before that are not accounted for; -1 = not known. */
static void add_parameters(struct memory_categories_work *w, int64_t *room)
{
	uint32_t from = 0, to = 0, n_kept;
	if (!has_the_gradients(w) || !largest_pass(&w->places, &from, &to))
		return;
	int64_t *kept = kept_sizes(w, &n_kept), sum = 0;
	for (uint32_t i = from; i < to; i++)
		sum += kept_fits(kept, n_kept, w->places.gradient[i].bytes) ? 0 : w->places.gradient[i].bytes;
	bool fits = *room < 0 || sum <= *room;
	for (uint32_t i = from; fits && i < to; i++)
		if (!kept_fits(kept, n_kept, w->places.gradient[i].bytes))
			add_kept(w, w->places.gradient[i].bytes, known(MEMORY_PARAMETER));
	if (*room >= 0 && fits)
		*room -= sum;
	mem_free(kept);
}

/* Where the recording first has a block at an address, and how that one begins. */
struct memory_first {
	int64_t addr;
	uint32_t pair;
};

static int by_addr_and_pair(const void *a, const void *b)
{
	const struct memory_first *x = a, *y = b;
	return COMPARE(x->addr, y->addr) ?: COMPARE(x->pair, y->pair);
}

static struct memory_first *pairs_by_address(const struct memory_categories_work *w)
{
	struct memory_first *v = NEW_ARRAY_RAW(w->n_pairs, struct memory_first);
	for (uint32_t i = 0; i < w->n_pairs; i++)
		v[i] = (struct memory_first){w->p->memory.addr[w->pair[i].alloc == ROW_NONE ? w->pair[i].release : w->pair[i].alloc], i};
	if (w->n_pairs)
		qsort(v, w->n_pairs, sizeof *v, by_addr_and_pair);
	return v;
}

/* What an accelerator's allocator gives for so many bytes, at least. */
static int64_t block_bytes(const struct memory_categories_work *w, int64_t bytes)
{
	return w->t->device == MEMORY_CPU || bytes > INT64_MAX - 512 ? bytes : (bytes + 511) / 512 * 512;
}

/* When what the program held at `addr` before the recording was freed, which torch does not record of host memory: as the program said, at the latest when the
 * recording has another block there. INT64_MAX = not; INT64_MIN = the recording has its free, or it was freed before the recording. */
static int64_t held_until(const struct memory_categories_work *w, const struct memory_first *first, int64_t addr)
{
	uint32_t at = FIRST_WHERE(i, 0, w->n_pairs, first[i].addr >= addr);
	int64_t freed_ns = memory_held_freed_ns(&w->held, addr);
	if (at == w->n_pairs || first[at].addr != addr)
		return freed_ns;
	uint32_t alloc = w->pair[first[at].pair].alloc;
	if (alloc == ROW_NONE || w->t->device != MEMORY_CPU)
		return INT64_MIN;
	return freed_ns < w->p->memory.time_ns[alloc] ? freed_ns : w->p->memory.time_ns[alloc];
}

/* Blocks of the program at one address from block b on: how much of them was held before, and the most that is said of it. Returns the block behind them. */
static uint32_t held_at_address(const struct memory_categories_work *w, uint32_t b, int64_t until_ns, int64_t *bytes, enum memory_held_kind *kind)
{
	const struct memory_held_block *v = w->held.block;
	uint32_t next = b;
	*bytes = 0;
	*kind = HELD_NOTHING;
	for (; next < w->held.n && v[next].addr == v[b].addr; next++) {
		if (v[next].time_ns == INT64_MIN && v[next].bytes > *bytes)
			*bytes = v[next].bytes;
		if (v[next].time_ns < until_ns && v[next].kind > *kind)
			*kind = v[next].kind;
	}
	return next;
}

/* What the program held when the recording began and of which the recording has no free. The sum of the bytes, -1 where it leaves 64 bits; it is added only if
 * `add`. */
static int64_t add_held(struct memory_categories_work *w, const struct memory_first *first, bool add)
{
	int64_t sum = 0;
	for (uint32_t i = 0, next; i < w->held.n; i = next) {
		int64_t until_ns = held_until(w, first, w->held.block[i].addr), bytes;
		enum memory_held_kind kind;
		next = held_at_address(w, i, until_ns, &bytes, &kind);
		bytes = block_bytes(w, bytes);
		if (!bytes || until_ns == INT64_MIN)
			continue;
		if (__builtin_add_overflow(sum, bytes, &sum))
			return -1;
		if (!add)
			continue;
		if (until_ns == INT64_MAX) {
			add_kept(w, bytes, of_held(kind));
			continue;
		}
		add_before(w, bytes, of_held(kind));
		MEM_PUSH(w->freed, w->n_freed, w->cap_freed, (struct memory_change){until_ns, -bytes, MEMORY_DESTROY, (uint8_t)of_held(kind).category, (uint8_t)of_held(kind).why});
	}
	return sum;
}

static int memory_categories_by_time(const void *a, const void *b)
{
	const struct memory_change *x = a, *y = b;
	return COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->bytes, y->bytes) ?: COMPARE(x->category, y->category);
}

/* What the program said; where the allocator had less than that, something is not as supposed, and nothing is added. */
static void add_stated_held(struct memory_categories_work *w, int64_t *room)
{
	struct memory_first *first = pairs_by_address(w);
	int64_t sum = add_held(w, first, false);
	if (sum >= 0 && (*room < 0 || sum <= *room)) {
		add_held(w, first, true);
		*room -= *room >= 0 ? sum : 0;
	}
	mem_free(first);
	if (w->n_freed)
		qsort(w->freed, w->n_freed, sizeof *w->freed, memory_categories_by_time);
}

/* What the allocator held before the first record; -1 = not known. Host memory is counted from when the profiler started, and
 * what was freed while none ran is still in: its totals say nothing about a beginning. */
static int64_t held_before(const struct memory_categories_work *w)
{
	const struct memories *m = &w->p->memory;
	int64_t before;
	for (uint32_t i = 0; w->t->device != MEMORY_CPU && i < m->rows.n; i++)
		if (memory_categories_on_device(w->p, i, w->t->device))
			return memory_has_totals(w->p, i) && !__builtin_sub_overflow(m->total_allocated[i], m->bytes[i], &before) ? before : -1;
	return -1;
}

static struct verdict of_storage(enum memory_storage_kind kind)
{
	switch (kind) {
	case STORAGE_GRADIENT:
		return known(MEMORY_GRADIENT);
	case STORAGE_PARAMETER:
		return known(MEMORY_PARAMETER);
	case STORAGE_OPTIMIZER_STATE:
		return known(MEMORY_OPTIMIZER_STATE);
	case STORAGE_FORWARD:
		return memory_categories_unknown(MEMORY_WHY_FORWARD);
	case STORAGE_OTHER:
		break;
	}
	return memory_categories_unknown(MEMORY_WHY_BEFORE);
}

static int storage_by_bytes_and_kind(const void *a, const void *b)
{
	const struct memory_storage *x = a, *y = b;
	return COMPARE(x->bytes, y->bytes) ?: COMPARE(x->kind, y->kind);
}

/* Drops a storage for each block of its size that the recording frees: it is in already, and which of them it is nobody says, so that those of which least is
 * known go. Returns how many are left. */
static uint32_t drop_freed(const struct memory_categories_work *w, struct memory_storage *v, uint32_t n)
{
	int64_t *freed = NEW_ARRAY_RAW(w->n_pairs, int64_t);
	uint32_t n_freed = 0, at = 0, left = 0;
	for (uint32_t i = 0; i < w->n_pairs; i++)
		if (w->pair[i].alloc == ROW_NONE && w->p->memory.bytes[w->pair[i].release] != INT64_MIN)
			freed[n_freed++] = -w->p->memory.bytes[w->pair[i].release];
	sort_i64(freed, n_freed);
	if (n)
		qsort(v, n, sizeof *v, storage_by_bytes_and_kind);
	for (uint32_t i = 0; i < n; i++) {
		while (at < n_freed && freed[at] < v[i].bytes)
			at++;
		if (at < n_freed && freed[at] == v[i].bytes)
			at++;
		else
			v[left++] = v[i];
	}
	mem_free(freed);
	return left;
}

/* What the execution trace says was held before. False where there is none, or where the allocator had less. */
static bool add_storages(struct memory_categories_work *w, int64_t *room)
{
	struct memory_storage *v;
	uint32_t n = memory_storages(w->p, &w->places, w->t->device, &v);
	n = drop_freed(w, v, n);
	int64_t sum = 0;
	bool fits = n > 0;
	for (uint32_t i = 0; i < n && fits; i++)
		fits = !__builtin_add_overflow(sum, v[i].bytes, &sum) && (*room < 0 || sum <= *room);
	for (uint32_t i = 0; i < n && fits; i++)
		add_kept(w, v[i].bytes, of_storage(v[i].kind));
	*room -= fits && *room >= 0 ? sum : 0;
	mem_free(v);
	return fits;
}

static void add_all_before(struct memory_categories_work *w)
{
	int64_t room = held_before(w);
	w->t->before_is_whole = room >= 0;
	for (uint32_t i = 0; i < w->n_pairs; i++) {
		if (w->pair[i].alloc != ROW_NONE || w->p->memory.bytes[w->pair[i].release] == INT64_MIN)
			continue;
		int64_t bytes = -w->p->memory.bytes[w->pair[i].release];
		uint32_t row = w->pair[i].release;
		add_before(w, bytes, (struct verdict){w->category[row], w->why[row]});
		if (room >= 0)
			room = bytes > room ? 0 : room - bytes;
	}
	if (w->held.stated)
		add_stated_held(w, &room);
	else if (!add_storages(w, &room))
		add_parameters(w, &room);
	if (room > 0)
		add_kept(w, room, memory_categories_unknown(MEMORY_WHY_BEFORE));
	w->t->kept_bytes = room > 0 ? room : 0;
	w->t->backward = w->places.n_passes > 0;
}

/* The frees from number `from` on that are at or before time_ns; returns the next. */
static uint32_t add_frees(struct memory_categories_work *w, uint32_t from, int64_t time_ns)
{
	for (; from < w->n_freed && w->freed[from].time_ns <= time_ns; from++)
		MEM_PUSH(w->t->change, w->t->n, w->cap, w->freed[from]);
	return from;
}

static void add_records(struct memory_categories_work *w)
{
	const struct memories *m = &w->p->memory;
	uint32_t freed = 0;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (!memory_categories_on_device(w->p, i, w->t->device) || !m->bytes[i])
			continue;
		freed = add_frees(w, freed, m->time_ns[i]);
		if (w->why[i] == MEMORY_WHY_NO_ADDRESS && m->bytes[i] > 0) {
			w->t->blocks[MEMORY_UNKNOWN]++;
			memory_categories_count_unknown(w->t, MEMORY_WHY_NO_ADDRESS, m->bytes[i]);
		}
		add_change(w, m->time_ns[i], m->bytes[i], m->bytes[i] > 0 ? MEMORY_CREATE : MEMORY_DESTROY,
		           (struct verdict){w->category[i], w->why[i]});
	}
	add_frees(w, freed, INT64_MAX);
}

static int find_peak(struct memory_timeline *t, struct err *e)
{
	int64_t sum = 0, of[MEMORY_CATEGORIES] = {0};
	t->peak_ns = -1;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct memory_change *c = &t->change[i];
		if (__builtin_add_overflow(sum, c->bytes, &sum) || __builtin_add_overflow(of[c->category], c->bytes, &of[c->category]))
			return err_set(e, ERR_LIMIT, "the memory records add up to more than 64 bits hold");
		if (sum > t->peak_bytes) {
			t->peak_bytes = sum;
			t->peak_ns = c->time_ns;
		}
	}
	return 0;
}

/* What the input states: the first `before` rows were held before. Its categories are those of the rows. Of sums of all blocks, no block is known. */
static void add_stated(struct memory_categories_work *w, int64_t before)
{
	const struct memories *m = &w->p->memory;
	struct str form;
	bool blocks = profile_meta(w->p, "memory timeline, form", &form) && str_eqc(form, "raw");
	w->t->before_is_whole = true;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		struct str name = profile_cat(w->p, m->cat[i]);
		struct verdict v = {MEMORY_UNKNOWN, MEMORY_WHY_STATED};
		for (int c = 0; c < MEMORY_UNKNOWN; c++)
			if (str_eqc(name, memory_category_name[c]))
				v = known((enum memory_category)c);
		w->category[i] = (uint8_t)v.category;
		w->why[i] = (uint8_t)v.why;
		if (i < before) {
			add_before(w, m->bytes[i], v);
			continue;
		}
		add_change(w, m->time_ns[i], m->bytes[i], !blocks ? MEMORY_INCREMENT_VERSION : m->bytes[i] > 0 ? MEMORY_CREATE : MEMORY_DESTROY, v);
		if (m->bytes[i] <= 0 || !blocks)
			continue;
		w->t->blocks[v.category]++;
		if (v.why)
			memory_categories_count_unknown(w->t, v.why, m->bytes[i]);
	}
}

static bool states_categories(const struct profile *p, int64_t *before)
{
	struct str text;
	return profile_meta(p, "memory timeline, held before", &text) && str_to_i64(text, before);
}

struct memory_timeline *memory_timeline_new(const struct profile *p, int device, struct err *e)
{
	int64_t before;
	uint32_t rows = p->memory.rows.n;
	struct memory_timeline *t = NEW(struct memory_timeline);
	struct memory_categories_work w = {.p = p, .t = t};
	t->device = device;
	memory_places_init(&w.places, p);
	w.sized = w.places.first[p->arg_set.rows.n] > 0;
	w.around = memory_around(p);
	w.category = NEW_ARRAY_RAW(rows, uint8_t);
	w.why = NEW_ARRAY_RAW(rows, uint8_t);
	for (uint32_t i = 0; i < rows; i++) {
		w.category[i] = MEMORY_UNKNOWN;
		w.why[i] = MEMORY_WHY_NO_ADDRESS;
	}
	if (states_categories(p, &before)) {
		add_stated(&w, before);
	} else {
		memory_held_read(&w.held, p, device);
		t->held_stated = w.held.stated;
		t->held_damaged = w.held.damaged;
		t->held_left_out = w.held.left_out;
		judge_blocks(&w);
		add_all_before(&w);
		add_records(&w);
		memory_held_release(&w.held);
		mem_free(w.freed);
	}
	mem_free(w.pair);
	t->category_of = w.category;
	t->why_of = w.why;
	mem_free(w.around);
	memory_places_release(&w.places);
	if (find_peak(t, e) == 0)
		return t;
	memory_timeline_free(t);
	return NULL;
}

void memory_timeline_free(struct memory_timeline *t)
{
	if (!t)
		return;
	mem_free(t->change);
	mem_free(t->category_of);
	mem_free(t->why_of);
	mem_free(t);
}

const char *memory_kept_text(const struct memory_timeline *t)
{
	if (t->held_stated)
		return "held before the recording, by no tensor that Python could see";
	bool parameters = ANY_WHERE(i, 0, t->n_before, t->change[i].category == MEMORY_PARAMETER);
	if (!t->backward)
		return "held before the recording (weights and caches, most likely)";
	return parameters ? "held before the recording (optimizer state and buffers, most likely)" :
	                    "held before the recording (weights and optimizer state, most likely)";
}
