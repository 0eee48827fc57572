#include "analysis/memory/memory_storages.h"

#include "analysis/analysis.h"
#include "analysis/memory/memory.h"
#include "analysis/names/autograd_names.h"
#include "analysis/names/names.h"
#include "base/arena.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "io/pyliteral.h"

#include <stdlib.h>

/* A tensor of an argument set. */
struct storage_tensor {
	int64_t id, bytes;
};

/* An op's use of a storage. */
struct storage_use {
	int64_t id, bytes, start_ns;
	uint32_t span;
	bool makes; /* it comes out of the op, and does not go in */
};

struct storage_found {
	struct memory_storage s;
	int64_t first_ns;
};

struct storages_work {
	const struct profile *p;
	const struct memory_places *places;
	int device;
	struct storage_tensor *tensor; /* of argument set i: [first[2 * i]] up to [first[2 * i + 1]] go in, and from there to [first[2 * i + 2]] come out */
	uint32_t *first, n_tensors, cap_tensors;
	struct storage_use *use;
	uint32_t n, cap;
	struct storage_found *found;
	uint32_t n_found, cap_found;
	struct storage_tensor *made;   /* bytes, and as id the time at which the innermost op that makes it has ended: then its block is there */
	uint32_t n_made, cap_made;
	uint8_t *of_gradients;         /* by span */
	int64_t backward_ns;           /* when the first backward pass begins */
};

static bool storages_on_device(const struct storages_work *w, struct str name)
{
	int64_t ordinal = 0;
	if (str_eqc(name, "cpu"))
		return w->device == MEMORY_CPU;
	if (w->device == MEMORY_CPU || str_eqc(name, "meta"))
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] == ':' && !str_to_i64((struct str){name.p + i + 1, name.n - i - 1}, &ordinal))
			return false;
	return ordinal == w->device;
}

static void storages_of_set(struct storages_work *w, uint32_t set, enum arg_key key, struct arena *a)
{
	struct str text;
	size_t at;
	const struct py *list = profile_arg(w->p, set, key, &text) ? py_parse(text, a, &at) : NULL;
	for (const struct py *x = list && list->type == PY_LIST ? list->first : NULL; x; x = x->next) {
		const struct py *id = x->type == PY_LIST && x->n == 3 ? x->first : NULL, *bytes = id ? id->next : NULL;
		if (id && id->type == PY_INT && bytes->type == PY_INT && bytes->i > 0 && bytes->next->type == PY_STR && storages_on_device(w, bytes->next->s))
			MEM_PUSH(w->tensor, w->n_tensors, w->cap_tensors, (struct storage_tensor){id->i, bytes->i});
	}
}

static void storages_of_sets(struct storages_work *w)
{
	uint32_t sets = w->p->arg_set.rows.n;
	w->first = NEW_ARRAY_RAW(2 * (size_t)sets + 1, uint32_t);
	for (uint32_t set = 0; set < sets; set++) {
		struct arena a = {0};
		w->first[2 * (size_t)set] = w->n_tensors;
		storages_of_set(w, set, ARG_INPUT_STORAGES, &a);
		w->first[2 * (size_t)set + 1] = w->n_tensors;
		storages_of_set(w, set, ARG_OUTPUT_STORAGES, &a);
		arena_release(&a);
	}
	w->first[2 * (size_t)sets] = w->n_tensors;
}

static int storages_by_id(const void *a, const void *b)
{
	const struct storage_use *x = a, *y = b;
	return COMPARE(x->id, y->id) ?: COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->span, y->span) ?: COMPARE(x->makes, y->makes);
}

/* Lists of tensors can be long: those that go in are looked through by their order. */
static void storages_add_uses(struct storages_work *w, uint32_t span)
{
	size_t set = w->p->span.args[span];
	uint32_t in = w->first[2 * set], out = w->first[2 * set + 1], end = w->first[2 * set + 2];
	int64_t *ids = NEW_ARRAY_RAW(out - in, int64_t);
	for (uint32_t i = in; i < out; i++)
		ids[i - in] = w->tensor[i].id;
	sort_i64(ids, out - in);
	for (uint32_t i = in; i < end; i++) {
		int64_t id = w->tensor[i].id;
		uint32_t n_in = out - in, at = FIRST_WHERE(k, 0, n_in, ids[k] >= id);
		bool makes = i >= out && (at == n_in || ids[at] != id);
		if (i < out || makes)
			MEM_PUSH(w->use, w->n, w->cap, (struct storage_use){id, w->tensor[i].bytes, w->p->span.start_ns[span], span, makes});
	}
	mem_free(ids);
}

static bool storages_within(const struct profile *p, uint32_t inner, uint32_t outer)
{
	return p->span.track[inner] == p->span.track[outer] && p->span.start_ns[outer] <= p->span.start_ns[inner] && span_end(p, inner) <= span_end(p, outer);
}

/* Ranges in which gradients alone are taken: AccumulateGrad, Optimizer.zero_grad. Rows of a parent come before those of its children. */
static uint8_t *storages_of_gradients(const struct profile *p)
{
	uint8_t *v = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i], name = p->span.name[i];
		v[i] = (up != ROW_NONE && v[up]) || name_autograd(p, name) == AUTOGRAD_ACCUMULATE || str_starts(profile_str(p, name), STR("Optimizer.zero_grad"));
	}
	return v;
}

static enum memory_storage_kind storages_kind(const struct storages_work *w, const struct storage_use *u, uint32_t n)
{
	bool forward = false, optimizer = false, early = false;
	for (uint32_t i = 0; i < n; i++) {
		struct memory_place at = w->places->of_span[u[i].span];
		if (w->of_gradients[u[i].span])
			return STORAGE_GRADIENT;
		bool in_step = at.optimizer != ROW_NONE, late = u[i].start_ns >= w->backward_ns;
		optimizer |= in_step && late;
		early |= in_step && !late;
		forward |= !in_step && at.engine == ROW_NONE;
	}
	if (early) /* gradients of before look like parameters and state */
		return STORAGE_OTHER;
	if (optimizer)
		return forward ? STORAGE_PARAMETER : STORAGE_OPTIMIZER_STATE;
	return forward ? STORAGE_FORWARD : STORAGE_OTHER;
}

/* All uses of one storage. Its size is that of the tensor that the first op takes: views that come later may be of a part, or repeat it (expand). The first op that makes it, if it does not begin before the first that takes it or is around that one, makes another of the same number. */
static void storages_judge(struct storages_work *w, const struct storage_use *u, uint32_t n)
{
	uint32_t before = 0, outer = ROW_NONE;
	while (before < n && !u[before].makes)
		before++;
	for (uint32_t i = before; i < n; i++) {
		if (!u[i].makes)
			continue;
		int64_t end_ns = span_end(w->p, u[i].span);
		if (outer != ROW_NONE && storages_within(w->p, u[i].span, outer)) {
			int64_t *made_ns = &w->made[w->n_made - 1].id;
			*made_ns = end_ns < *made_ns ? end_ns : *made_ns;
			continue;
		}
		outer = u[i].span;
		MEM_PUSH(w->made, w->n_made, w->cap_made, (struct storage_tensor){end_ns, u[i].bytes});
	}
	if (before)
		MEM_PUSH(w->found, w->n_found, w->cap_found, (struct storage_found){{u[0].bytes, storages_kind(w, u, before)}, u[0].start_ns});
}

static int storages_by_size_and_time(const void *a, const void *b)
{
	const struct storage_found *x = a, *y = b;
	return COMPARE(x->s.bytes, y->s.bytes) ?: COMPARE(x->first_ns, y->first_ns) ?: COMPARE(x->s.kind, y->s.kind);
}

static int storages_by_bytes_and_time(const void *a, const void *b)
{
	const struct storage_tensor *x = a, *y = b;
	return COMPARE(x->bytes, y->bytes) ?: COMPARE(x->id, y->id);
}

/* How many of `bytes` there are up to a time. */
static uint32_t storages_up_to(const struct storage_tensor *v, uint32_t n, int64_t bytes, int64_t time_ns)
{
	uint32_t from = FIRST_WHERE(i, 0, n, v[i].bytes >= bytes);
	return FIRST_WHERE(i, from, n, v[i].bytes > bytes || v[i].id > time_ns) - from;
}

/* As an accelerator's allocator rounds. */
static int64_t storages_block(const struct storages_work *w, int64_t bytes)
{
	return w->device == MEMORY_CPU || bytes > INT64_MAX - 512 ? bytes : (bytes + 511) / 512 * 512;
}

/* Keeps those that can be no block of the recording: of so many of one size as there are blocks that nobody is known to have made, which these are is unknown, and
 * so it is what the others are for. */
static uint32_t storages_sift(struct storages_work *w)
{
	const struct memories *m = &w->p->memory;
	struct storage_tensor *block = NULL;
	uint32_t n_blocks = 0, cap = 0, kept = 0, doubted = 0;
	for (uint32_t i = 0; i < m->rows.n; i++)
		if (m->bytes[i] > 0 && memory_device(w->p, i) == w->device && memory_is_event(w->p, i))
			MEM_PUSH(block, n_blocks, cap, (struct storage_tensor){m->time_ns[i], m->bytes[i]});
	for (uint32_t i = 0; i < w->n_made; i++)
		w->made[i].bytes = storages_block(w, w->made[i].bytes);
	for (uint32_t i = 0; i < w->n_found; i++)
		w->found[i].s.bytes = storages_block(w, w->found[i].s.bytes);
	if (n_blocks)
		qsort(block, n_blocks, sizeof *block, storages_by_bytes_and_time);
	if (w->n_made)
		qsort(w->made, w->n_made, sizeof *w->made, storages_by_bytes_and_time);
	if (w->n_found)
		qsort(w->found, w->n_found, sizeof *w->found, storages_by_size_and_time);
	for (uint32_t i = 0; i < w->n_found; i++) {
		struct storage_found f = w->found[i];
		doubted = i && w->found[i - 1].s.bytes == f.s.bytes ? doubted : 0;
		uint32_t blocks = storages_up_to(block, n_blocks, f.s.bytes, f.first_ns), made = storages_up_to(w->made, w->n_made, f.s.bytes, f.first_ns);
		uint32_t others = blocks > made ? blocks - made : 0;
		if (others > doubted) {
			doubted++;
			continue;
		}
		f.s.kind = others ? STORAGE_OTHER : f.s.kind;
		w->found[kept++] = f;
	}
	mem_free(block);
	return kept;
}

uint32_t memory_storages(const struct profile *p, const struct memory_places *places, int device, struct memory_storage **out)
{
	struct storages_work w = {.p = p, .places = places, .device = device, .backward_ns = INT64_MAX};
	storages_of_sets(&w);
	w.of_gradients = storages_of_gradients(p);
	for (uint32_t i = 0; i < p->span.rows.n && w.n_tensors; i++) {
		if (places->of_span[i].engine != ROW_NONE && p->span.start_ns[i] < w.backward_ns)
			w.backward_ns = p->span.start_ns[i];
		if (p->span.kind[i] == SPAN_OP)
			storages_add_uses(&w, i);
	}
	if (w.n)
		qsort(w.use, w.n, sizeof *w.use, storages_by_id);
	for (uint32_t i = 0, next; i < w.n; i = next) {
		for (next = i + 1; next < w.n && w.use[next].id == w.use[i].id; next++)
			;
		storages_judge(&w, w.use + i, next - i);
	}
	uint32_t n = storages_sift(&w);
	*out = NEW_ARRAY_RAW(n, struct memory_storage);
	for (uint32_t i = 0; i < n; i++)
		(*out)[i] = w.found[i].s;
	mem_free(w.of_gradients);
	mem_free(w.tensor);
	mem_free(w.first);
	mem_free(w.use);
	mem_free(w.found);
	mem_free(w.made);
	return n;
}
