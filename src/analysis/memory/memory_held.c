#include "analysis/memory/memory_held.h"

#include "analysis/memory/memory.h"
#include "analysis/memory/memory_places.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "io/json.h"

#include <stdlib.h>

enum { HELD_FIELDS = 6, HELD_FREED_FIELDS = 4, HELD_MAX_KINDS = 16, HELD_VERSION = 1, HELD_C10_CPU = 0 };

static const struct {
	const char *name;
	enum memory_held_kind kind;
} held_kind[] = {
	{"TENSOR", HELD_TENSOR}, {"BUFFER", HELD_BUFFER}, {"INPUT", HELD_INPUT}, {"OPTIMIZER_STATE", HELD_OPTIMIZER_STATE},
	{"GRADIENT", HELD_GRADIENT}, {"PARAMETER", HELD_PARAMETER},
};

/* The text as it is read: `json.end` is behind all members. */
struct memory_held_reading {
	struct memory_held *h;
	struct json json;
	int64_t *moment_ns;
	uint32_t n_moments, cap_moments;
	enum memory_held_kind kind[HELD_MAX_KINDS];
	uint32_t n_kinds, cap, cap_freed;
	int64_t base_ns;
	int device;
};

/* An element of an array; NULL at its end, and where the text is damaged. */
static const char *next_element(struct memory_held_reading *r, const char **at, bool *first, struct json_value *v)
{
	bool done = false;
	const char *p = json_element(&r->json, *at, first, &done);
	if (!p || done)
		return NULL;
	return *at = json_value(&r->json, p, v);
}

static bool held_i64(const struct json_value *v, int64_t *number)
{
	return v->type == JSON_NUMBER && json_to_i64(v->raw, number);
}

static bool read_moments(struct memory_held_reading *r, struct str array)
{
	const char *at = array.p + 1;
	bool first = true;
	for (struct json_value v; next_element(r, &at, &first, &v);) {
		int64_t ns;
		if (!held_i64(&v, &ns) || __builtin_sub_overflow(ns, r->base_ns, &ns))
			return false;
		MEM_PUSH(r->moment_ns, r->n_moments, r->cap_moments, ns);
	}
	return r->json.status == JSON_OK && r->n_moments;
}

static bool read_kinds(struct memory_held_reading *r, struct str array)
{
	const char *at = array.p + 1;
	bool first = true;
	for (struct json_value v; next_element(r, &at, &first, &v);) {
		if (v.type != JSON_STRING || r->n_kinds == HELD_MAX_KINDS)
			return false;
		enum memory_held_kind kind = HELD_NOTHING; /* of a later opscope */
		for (size_t i = 0; i < sizeof held_kind / sizeof held_kind[0]; i++)
			if (str_eqc(v.raw, held_kind[i].name))
				kind = held_kind[i].kind;
		r->kind[r->n_kinds++] = kind;
	}
	return r->json.status == JSON_OK;
}

/* An array of exactly n numbers. */
static bool held_numbers(struct memory_held_reading *r, struct str array, int64_t *number, unsigned n)
{
	const char *at = array.p + 1;
	bool first = true;
	unsigned i = 0;
	for (struct json_value v; next_element(r, &at, &first, &v); i++)
		if (i == n || !held_i64(&v, &number[i]))
			return false;
	return r->json.status == JSON_OK && i == n;
}

static bool on_held_device(const struct memory_held_reading *r, int64_t type, int64_t ordinal)
{
	return r->device == (type == HELD_C10_CPU ? MEMORY_CPU : ordinal < 0 ? 0 : ordinal);
}

static bool read_freed(struct memory_held_reading *r, struct str array)
{
	int64_t field[HELD_FREED_FIELDS], ns;
	if (!held_numbers(r, array, field, HELD_FREED_FIELDS) || __builtin_sub_overflow(field[0], r->base_ns, &ns))
		return false;
	if (on_held_device(r, field[1], field[2]))
		MEM_PUSH(r->h->freed, r->h->n_freed, r->cap_freed, (struct memory_held_free){field[3], ns});
	return true;
}

static bool read_block(struct memory_held_reading *r, struct str array)
{
	int64_t field[HELD_FIELDS];
	if (!held_numbers(r, array, field, HELD_FIELDS))
		return false;
	int64_t moment = field[0], kind = field[3], addr = field[4], bytes = field[5];
	if (moment < 0 || moment >= r->n_moments || kind < 0 || kind >= r->n_kinds || bytes <= 0)
		return false;
	if (!on_held_device(r, field[1], field[2]) || r->kind[kind] == HELD_NOTHING)
		return true;
	MEM_PUSH(r->h->block, r->h->n, r->cap, (struct memory_held_block){addr, moment ? r->moment_ns[moment] : INT64_MIN, bytes, r->kind[kind]});
	return true;
}

static bool read_arrays(struct memory_held_reading *r, struct str array, bool (*read)(struct memory_held_reading *, struct str))
{
	const char *at = array.p + 1;
	bool first = true;
	for (struct json_value v; next_element(r, &at, &first, &v);)
		if (v.type != JSON_ARRAY || !read(r, v.raw))
			return false;
	return r->json.status == JSON_OK;
}

enum { HELD_MEMBER_VERSION, HELD_MEMBER_MOMENTS, HELD_MEMBER_KINDS, HELD_MEMBER_BLOCKS, HELD_MEMBER_FREED, HELD_MEMBER_LEFT_OUT, HELD_MEMBERS };

/* Members in any order: blocks are read last. */
static bool read_held(struct memory_held_reading *r, const char *at)
{
	static const char *const names[HELD_MEMBERS] = {"version", "moments", "kinds", "blocks", "freed", "left_out"};
	static const enum json_type types[HELD_MEMBERS] = {JSON_NUMBER, JSON_ARRAY, JSON_ARRAY, JSON_ARRAY, JSON_ARRAY, JSON_NUMBER};
	struct str member[HELD_MEMBERS] = {0};
	bool first = true;
	int64_t version;
	if (*at++ != '{')
		return false;
	for (struct json_value key, v;;) {
		at = json_member(&r->json, at, &first, &key);
		if (!at)
			return false;
		if (!key.raw.p)
			break;
		at = json_value(&r->json, at, &v);
		if (!at)
			return false;
		for (int i = 0; i < HELD_MEMBERS; i++)
			if (v.type == types[i] && str_eqc(key.raw, names[i]))
				member[i] = v.raw;
	}
	for (int i = 0; i < HELD_MEMBERS; i++)
		if (!member[i].p)
			return false;
	return json_to_i64(member[HELD_MEMBER_VERSION], &version) && version == HELD_VERSION && json_to_i64(member[HELD_MEMBER_LEFT_OUT], &r->h->left_out) &&
	       read_moments(r, member[HELD_MEMBER_MOMENTS]) && read_kinds(r, member[HELD_MEMBER_KINDS]) &&
	       read_arrays(r, member[HELD_MEMBER_BLOCKS], read_block) && read_arrays(r, member[HELD_MEMBER_FREED], read_freed);
}

static int held_by_addr_and_time(const void *a, const void *b)
{
	const struct memory_held_block *x = a, *y = b;
	return COMPARE(x->addr, y->addr) ?: COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->kind, y->kind) ?: COMPARE(x->bytes, y->bytes);
}

static int freed_by_addr_and_time(const void *a, const void *b)
{
	const struct memory_held_free *x = a, *y = b;
	return COMPARE(x->addr, y->addr) ?: COMPARE(x->time_ns, y->time_ns);
}

void memory_held_read(struct memory_held *h, const struct profile *p, int device)
{
	struct str text, base;
	*h = (struct memory_held){0};
	if (!profile_meta(p, "opscope_held_memory", &text))
		return;
	struct buf bytes = {0};
	buf_str(&bytes, text);
	buf_fill(&bytes, 0, JSON_PADDING);
	struct memory_held_reading r = {.h = h, .device = device, .json = {.end = bytes.p + text.n}};
	if (!profile_meta(p, "baseTimeNanoseconds", &base) || !str_to_i64(base, &r.base_ns))
		r.base_ns = 0;
	h->stated = read_held(&r, bytes.p);
	h->damaged = !h->stated;
	if (h->damaged)
		h->n = h->n_freed = 0;
	if (h->n_freed)
		qsort(h->freed, h->n_freed, sizeof *h->freed, freed_by_addr_and_time);
	if (h->n)
		qsort(h->block, h->n, sizeof *h->block, held_by_addr_and_time);
	mem_free(r.moment_ns);
	buf_release(&bytes);
}

void memory_held_release(struct memory_held *h)
{
	mem_free(h->block);
	mem_free(h->freed);
	*h = (struct memory_held){0};
}

enum memory_held_kind memory_held_kind_of(const struct memory_held *h, int64_t addr, int64_t bytes, int64_t from_ns, int64_t to_ns)
{
	const struct memory_held_block *b = h->block;
	enum memory_held_kind kind = HELD_NOTHING;
	uint32_t at = FIRST_WHERE(i, 0, h->n, b[i].addr > addr || (b[i].addr == addr && b[i].time_ns >= from_ns));
	for (; at < h->n && b[at].addr == addr && b[at].time_ns <= to_ns; at++)
		if (b[at].kind > kind && memory_fits(bytes, b[at].bytes))
			kind = b[at].kind;
	return kind;
}

int64_t memory_held_freed_ns(const struct memory_held *h, int64_t addr)
{
	uint32_t at = FIRST_WHERE(i, 0, h->n_freed, h->freed[i].addr >= addr);
	return at < h->n_freed && h->freed[at].addr == addr ? h->freed[at].time_ns : INT64_MAX;
}
