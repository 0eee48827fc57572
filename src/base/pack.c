#include "base/pack.h"

#include "base/hash.h"
#include "base/mem.h"

enum { PACK_VARINT_MOST = 10 };

/* ---- integers ---- */

static uint64_t pack_load(const struct pack_field *f, const void *p)
{
	switch (f->size) {
	case 1: { uint8_t v; memcpy(&v, p, 1); return f->is_signed ? (uint64_t)(int64_t)(int8_t)v : v; }
	case 2: { uint16_t v; memcpy(&v, p, 2); return f->is_signed ? (uint64_t)(int64_t)(int16_t)v : v; }
	case 4: { uint32_t v; memcpy(&v, p, 4); return f->is_signed ? (uint64_t)(int64_t)(int32_t)v : v; }
	default: { uint64_t v; memcpy(&v, p, 8); return v; }
	}
}

/* Of a value that fits. */
static void pack_store(const struct pack_field *f, void *p, uint64_t v)
{
	const uint32_t v4 = (uint32_t)v;
	const uint16_t v2 = (uint16_t)v;
	const uint8_t v1 = (uint8_t)v;
	memcpy(p, f->size == 1 ? (const void *)&v1 : f->size == 2 ? (const void *)&v2 : f->size == 4 ? (const void *)&v4 : &v, f->size);
}

/* The range of the field and that of its type. */
static bool pack_fits(const struct pack_field *f, int64_t v)
{
	const unsigned bits = f->size * 8u;
	if (v < f->least || v > f->most)
		return false;
	if (bits == 64)
		return f->is_signed || v >= 0;
	const int64_t most = ((int64_t)1 << (f->is_signed ? bits - 1 : bits)) - 1;
	return v <= most && v >= (f->is_signed ? -most - 1 : 0);
}

static void pack_put_varint(struct buf *out, uint64_t v)
{
	uint8_t *p = (uint8_t *)buf_room(out, PACK_VARINT_MOST), *at = p;
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	out->n += (size_t)(at - p);
}

static void pack_put_difference(struct buf *out, uint64_t v, uint64_t *before)
{
	uint64_t d = v - *before;
	pack_put_varint(out, (d << 1) ^ (0 - (d >> 63)));
	*before = v;
}

/* ---- writing ---- */

static void pack_put_type(const struct pack_type *t, const char *base, size_t stride, uint32_t n, struct buf *out);

static void pack_put_text(struct buf *out, struct str s)
{
	pack_put_varint(out, s.n);
	if (s.n)
		buf_str(out, s);
}

static void pack_put_texts(const struct intern *t, struct buf *out)
{
	pack_put_varint(out, t->n - 1);
	for (uint32_t i = 1; i < t->n; i++)
		pack_put_text(out, intern_get(t, i));
}

static uint32_t pack_count(const char *of, const struct pack_field *f)
{
	return *(const uint32_t *)(of + f->count_at);
}

static void pack_put_ints(const int64_t *v, uint32_t n, uint64_t *before, struct buf *out)
{
	for (uint32_t i = 0; i < n; i++)
		pack_put_difference(out, (uint64_t)v[i], before);
}

/* One field of n structs that lie `stride` bytes apart. */
static void pack_put_field(const struct pack_field *f, const char *base, size_t stride, uint32_t n, struct buf *out)
{
	uint64_t before = 0;
	if (f->kind == PACK_STRUCT) {
		pack_put_type(f->of, base + f->at, stride, n, out);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const char *of = base + i * stride, *p = of + f->at;
		switch (f->kind) {
		case PACK_INT: case PACK_FLAG: case PACK_REF:
			pack_put_difference(out, pack_load(f, p), &before);
			break;
		case PACK_REAL:
			buf_put(out, p, sizeof(double));
			break;
		case PACK_INTS:
			pack_put_ints((const int64_t *)p, f->n, &before, out);
			break;
		case PACK_TEXT:
			pack_put_text(out, *(const struct str *)p);
			break;
		case PACK_LIST:
			pack_put_varint(out, pack_count(of, f));
			pack_put_ints(*(int64_t *const *)p, pack_count(of, f), &before, out);
			break;
		case PACK_ROWS:
			pack_put_varint(out, pack_count(of, f));
			pack_put_type(f->of, *(char *const *)p, f->of->size, pack_count(of, f), out);
			break;
		case PACK_TEXTS:
			pack_put_texts((const struct intern *)p, out);
			break;
		case PACK_STRUCT: case PACK_LATER: case PACK_OWN:
			break;
		}
	}
}

static void pack_put_type(const struct pack_type *t, const char *base, size_t stride, uint32_t n, struct buf *out)
{
	for (unsigned i = 0; i < t->n; i++)
		pack_put_field(&t->field[i], base, stride, n, out);
}

void pack_put(const struct pack_type *type, const void *whole, struct buf *out)
{
	pack_put_type(type, whole, type->size, 1, out);
}

/* ---- reading ---- */

struct pack_reader {
	const uint8_t *at, *end;
	struct arena *arena;
	const char *why;         /* the field at which reading ended */
};

static bool pack_take_type(struct pack_reader *r, const struct pack_type *t, char *base, size_t stride, uint32_t n);

static bool pack_take_varint(struct pack_reader *r, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint64_t b = *r->at++;
		*v |= (b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		return (shift < 63 || b <= 1) && (b || !shift); /* within 64 bits, and in no more bytes than it takes */
	}
	return false;
}

static bool pack_take_difference(struct pack_reader *r, uint64_t *before)
{
	uint64_t z;
	if (!pack_take_varint(r, &z))
		return false;
	*before += (z >> 1) ^ (0 - (z & 1));
	return true;
}

/* How many things follow, each of which takes `least` bytes or more. So what is allocated stays within some times the bytes that are there. */
static bool pack_take_count(struct pack_reader *r, size_t least, uint32_t *n)
{
	uint64_t v;
	if (!pack_take_varint(r, &v) || v >= UINT32_MAX || v * (least ? least : 1) > (uint64_t)(r->end - r->at))
		return false;
	*n = (uint32_t)v;
	return true;
}

static bool pack_take_bytes(struct pack_reader *r, struct str *s)
{
	uint32_t n;
	if (!pack_take_count(r, 1, &n))
		return false;
	*s = (struct str){(const char *)r->at, n};
	r->at += n;
	return true;
}

static bool pack_take_texts(struct pack_reader *r, struct intern *t)
{
	uint32_t n;
	struct str s;
	bool good = pack_take_count(r, 1, &n);
	for (uint32_t i = 1; good && i <= n; i++)
		good = pack_take_bytes(r, &s) && intern_str(t, s) == i;
	return good;
}

static bool pack_take_ints(struct pack_reader *r, const struct pack_field *f, int64_t *v, uint32_t n, uint64_t *before)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!pack_take_difference(r, before) || !pack_fits(f, (int64_t)*before))
			return false;
		v[i] = (int64_t)*before;
	}
	return true;
}

/* Bytes that a struct takes at least. */
static size_t pack_least(const struct pack_type *t)
{
	size_t n = 0;
	for (unsigned i = 0; i < t->n; i++) {
		const struct pack_field *f = &t->field[i];
		n += f->kind == PACK_STRUCT ? pack_least(f->of) : f->kind == PACK_INTS ? f->n : f->kind == PACK_REAL ? sizeof(double) : f->kind == PACK_LATER || f->kind == PACK_OWN ? 0 : 1;
	}
	return n;
}

static bool pack_take_one(struct pack_reader *r, const struct pack_field *f, char *of, uint64_t *before)
{
	char *p = of + f->at;
	struct str s;
	uint32_t n;
	switch (f->kind) {
	case PACK_INT: case PACK_FLAG: case PACK_REF:
		if (!pack_take_difference(r, before) || !pack_fits(f, (int64_t)*before))
			return false;
		pack_store(f, p, *before);
		return true;
	case PACK_REAL:
		if ((size_t)(r->end - r->at) < sizeof(double))
			return false;
		memcpy(p, r->at, sizeof(double));
		r->at += sizeof(double);
		return true;
	case PACK_INTS:
		return pack_take_ints(r, f, (int64_t *)p, f->n, before);
	case PACK_TEXT:
		if (!pack_take_bytes(r, &s))
			return false;
		*(struct str *)p = arena_str(r->arena, s);
		return true;
	case PACK_LIST:
		if (!pack_take_count(r, 1, &n))
			return false;
		*(int64_t **)p = n ? NEW_ARRAY(n, int64_t) : NULL;
		*(uint32_t *)(of + f->count_at) = n;
		return pack_take_ints(r, f, *(int64_t **)p, n, before);
	case PACK_ROWS:
		if (!pack_take_count(r, pack_least(f->of), &n))
			return false;
		*(char **)p = n ? mem_zalloc(n, f->of->size) : NULL;
		*(uint32_t *)(of + f->count_at) = n;
		return pack_take_type(r, f->of, *(char **)p, f->of->size, n);
	case PACK_TEXTS:
		return pack_take_texts(r, (struct intern *)p);
	case PACK_LATER:
		pack_store(f, p, (uint64_t)f->least);
		return true;
	case PACK_STRUCT: case PACK_OWN:
		return true;
	}
	return false;
}

static bool pack_take_type(struct pack_reader *r, const struct pack_type *t, char *base, size_t stride, uint32_t n)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct pack_field *f = &t->field[i];
		uint64_t before = 0;
		if (f->kind == PACK_STRUCT && !pack_take_type(r, f->of, base + f->at, stride, n))
			return false;
		for (uint32_t k = 0; k < n; k++)
			if (!pack_take_one(r, f, base + k * stride, &before)) {
				r->why = f->name;
				return false;
			}
	}
	return true;
}

/* Whether all indices lie within what they are of, which may stand behind them in the bytes. */
static bool pack_refs_fit(struct pack_reader *r, const struct pack_type *t, const char *base, size_t stride, uint32_t n, const char *whole)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct pack_field *f = &t->field[i];
		bool fit = f->kind != PACK_STRUCT || pack_refs_fit(r, f->of, base + f->at, stride, n, whole);
		for (uint32_t k = 0; fit && k < n; k++) {
			const char *of = base + k * stride;
			if (f->kind == PACK_ROWS)
				fit = pack_refs_fit(r, f->of, *(char *const *)(of + f->at), f->of->size, pack_count(of, f), whole);
			else if (f->kind == PACK_REF && pack_load(f, of + f->at) >= *(const uint32_t *)(whole + f->count_at))
				return r->why = f->name, false;
		}
		if (!fit)
			return false;
	}
	return true;
}

bool pack_take(const struct pack_type *type, struct str bytes, struct arena *a, void *whole, const char **why)
{
	struct pack_reader r = {(const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n, a, "end"};
	bool good = pack_take_type(&r, type, whole, type->size, 1) && r.at == r.end && pack_refs_fit(&r, type, whole, type->size, 1, whole);
	*why = r.why;
	return good;
}

uint64_t pack_version(const struct pack_type *type)
{
	uint64_t v = hash_bytes(type->text, strlen(type->text));
	for (unsigned i = 0; i < type->n; i++)
		v = hash_u64(v + type->field[i].size) + (type->field[i].of ? pack_version(type->field[i].of) : 0);
	return v;
}
