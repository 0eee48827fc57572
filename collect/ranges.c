#include "ranges.h"

#include "control.h"
#include "intern.h"
#include "segment.h"
#include "sys.h"
#include "threads.h"

#include <string.h>

/* The open ranges of a thread in a domain: how many, and for the outermost DEPTH_MOST levels whether each was written, and whether control.c
 * wants to know its end. Of deeper ones it is told of one alone: those inside of that change nothing. */
struct depth {
	uint32_t n;
	uint32_t told_deep;             /* its level + 1; 0 = none */
	uint8_t written[DEPTH_MOST / 8], told[DEPTH_MOST / 8];
};

enum { POP_BYTES = sizeof(struct wire_pop), TOLD_RANGE = 1 };
/* What is promised to pops leaves room for any record in the same block. */
enum { KEPT_MOST = (WIRE_BLOCK - (int)sizeof(struct wire_chunk) - WIRE_MAX_RECORD) / POP_BYTES * POP_BYTES };
_Static_assert(KEPT_MOST <= DEPTH_MOST * POP_BYTES, "a range that is promised its pop has a bit that says so");
_Static_assert(sizeof(struct wire_range) + 6 * 8 + 8 + WIRE_MAX_STRING <= WIRE_MAX_RECORD, "the longest range is no longer than any record");

/* Entered under the slow lock; found again through their names. */
static uint32_t domain_name[DOMAINS_MOST];
static _Atomic uint32_t n_domains = 1; /* 0 is the default one */

static bool bit(const uint8_t *bits, uint32_t i) { return i < DEPTH_MOST && bits[i / 8] >> (i % 8) & 1; }

static void ranges_set_bit(uint8_t *bits, uint32_t i, bool on)
{
	if (i < DEPTH_MOST)
		bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << (i % 8))) | (unsigned)on << (i % 8));
}

static void set_told(struct depth *d, uint32_t level, bool told)
{
	ranges_set_bit(d->told, level, told);
	if (UNLIKELY(told && level >= DEPTH_MOST))
		d->told_deep = level + 1;
}

static struct depth *depth_of(struct writer *w, uint32_t d)
{
	if (d >= DOMAINS_MOST)
		d = DOMAINS_MOST - 1;
	if (UNLIKELY(d >= w->n_depths)) {
		if (!w->depth && !(w->depth = sys_reserve(DOMAINS_MOST * sizeof *w->depth)))
			return NULL;
		if (!sys_ready(w->depth, &w->ready_depths, (d + 1) * sizeof *w->depth, false))
			return NULL;
		w->n_depths = d + 1;
	}
	return &w->depth[d];
}

void ranges_unrecord(struct writer *w)
{
	for (uint32_t d = 0; d < w->n_depths; d++)
		if (w->depth[d].n)
			memset(w->depth[d].written, 0, sizeof w->depth[d].written);
	w->kept = 0;
}

void ranges_restart(struct writer *w)
{
	if (w->n_depths)
		memset(w->depth, 0, w->n_depths * sizeof *w->depth);
	w->kept = 0;
}

void ranges_forget(struct writer *w)
{
	if (w->depth)
		sys_release(w->depth, DOMAINS_MOST * sizeof *w->depth);
	w->depth = NULL;
	w->n_depths = 0;
	w->ready_depths = 0;
	w->kept = 0;
}

/* ---- the text ---- */

/* The parts of "NAME, seq = N, op_id = N, sizes = S, REST", in which only NAME and S come again. */
struct ranges_parts {
	size_t name, sizes, n_sizes, rest;
	uint32_t seq, op_id;
};

/* ", key = " and digits without a leading zero that fit u32 and are not UINT32_MAX, so that the number is all there was to say. */
static bool ranges_take_number(const char *t, size_t n, size_t *at, const char *key, size_t n_key, uint32_t *v)
{
	size_t i = *at + n_key, first = i;
	uint64_t number = 0;
	if (i >= n || memcmp(t + *at, key, n_key) != 0)
		return false;
	for (; i < n && t[i] >= '0' && t[i] <= '9' && i - first < 10; i++)
		number = number * 10 + (uint64_t)(t[i] - '0');
	if (i == first || number >= UINT32_MAX || (t[first] == '0' && i - first > 1) || (i < n && t[i] != ','))
		return false;
	*v = (uint32_t)number;
	*at = i;
	return true;
}

static bool ranges_split_at(const char *t, size_t n, size_t at, struct ranges_parts *p)
{
	static const char seq[] = ", seq = ", op[] = ", op_id = ", sizes[] = ", sizes = ", inputs[] = ", input_op_ids = ";
	*p = (struct ranges_parts){.name = at, .seq = UINT32_MAX, .op_id = UINT32_MAX};
	bool has_seq = ranges_take_number(t, n, &at, seq, sizeof seq - 1, &p->seq), has_op = ranges_take_number(t, n, &at, op, sizeof op - 1, &p->op_id);
	if (!has_seq && !has_op)
		return false;
	p->rest = at;
	if (at + sizeof sizes - 1 < n && memcmp(t + at, sizes, sizeof sizes - 1) == 0) {
		const char *from = t + at + sizeof sizes - 1, *end = memmem(from, n - (size_t)(from - t), inputs, sizeof inputs - 1);
		p->sizes = (size_t)(from - t);
		p->n_sizes = (size_t)((end ? end : t + n) - from);
		p->rest = p->sizes + p->n_sizes;
	}
	return true;
}

/* Only texts that end like those of emit_nvtx are looked at: in a number behind " = ", or in a bracket. */
static bool ranges_split(const char *t, size_t n, struct ranges_parts *p)
{
	char last = t[n - 1];
	if (LIKELY(last != ']' && (last < '0' || last > '9')))
		return false;
	if (last != ']') {
		size_t i = n;
		while (i && t[i - 1] >= '0' && t[i - 1] <= '9')
			i--;
		if (i < 4 || memcmp(t + i - 3, " = ", 3) != 0)
			return false;
	}
	for (const char *q = t; (q = memchr(q, ',', n - (size_t)(q - t))); q++)
		if (n - (size_t)(q - t) > 8 && (memcmp(q, ", seq = ", 8) == 0 || memcmp(q, ", op_id ", 8) == 0) && ranges_split_at(t, n, (size_t)(q - t), p))
			return true;
	return false;
}

bool range_text_is_numbered(const char *text, size_t n)
{
	struct ranges_parts p;
	return n && ranges_split(text, n, &p);
}

/* ---- records ---- */

static const char *ranges_text_of(const struct event *e, size_t *n)
{
	if (!e->id) {
		*n = e->n;
		return e->text;
	}
	struct text t = intern_text(e->id);
	*n = t.n;
	return t.p;
}

static char *ranges_part(char *to, uint32_t a, uint32_t b)
{
	memcpy(to, &a, 4);
	memcpy(to + 4, &b, 4);
	return to + 8;
}

/* The part WIRE_HAS_TEXT. */
static uint32_t inline_bytes(size_t n) { return (uint32_t)((4 + n + 7) & ~(size_t)7); }

static void ranges_put_inline(char *to, const char *text, size_t n)
{
	uint32_t bytes = (uint32_t)n;
	memset(to + inline_bytes(n) - 8, 0, 8);
	memcpy(to, &bytes, 4);
	memcpy(to + 4, text, n);
}

/* Everything but the plain case: a text that is in no table, numbers, a domain, ... */
static bool append_full(struct writer *w, uint8_t type, const struct event *e, uint32_t id, const struct ranges_parts *p, uint64_t range)
{
	size_t n_rest = 0;
	const char *rest = NULL;
	uint32_t sizes = 0;
	uint8_t flags = 0;
	if (!id && (e->n || e->id)) { /* no place in the table: inside, whole */
		rest = ranges_text_of(e, &n_rest);
		p = NULL;
		if (e->is_op)
			lose(WIRE_LOST_STRINGS, 1); /* that it is an op, and of which number */
	} else if (p) {
		size_t n;
		const char *t = ranges_text_of(e, &n);
		if (p->n_sizes && !(sizes = intern(t + p->sizes, p->n_sizes))) {
			rest = t + p->sizes - 10; /* ", sizes = " goes along */
			n_rest = n - (p->sizes - 10);
		} else if (p->rest < n) {
			rest = t + p->rest;
			n_rest = n - p->rest;
		}
	}
	if (n_rest > WIRE_MAX_STRING) {
		n_rest = intern_cut(rest);
		flags |= WIRE_CUT;
	}
	flags |= (uint8_t)((p ? WIRE_HAS_OP : 0) | (sizes ? WIRE_HAS_SIZES : 0) | (e->category || e->colour ? WIRE_HAS_ATTR : 0) |
	                   (e->domain || e->payload_kind ? WIRE_HAS_DOMAIN : 0) | (e->payload_kind ? WIRE_HAS_PAYLOAD : 0) |
	                   (type == WIRE_START ? WIRE_HAS_RANGE : 0) | (n_rest ? WIRE_HAS_TEXT : 0));
	uint32_t bytes = (uint32_t)sizeof(struct wire_range) + 8u * (uint32_t)__builtin_popcount(flags & 0x3f) + (n_rest ? inline_bytes(n_rest) : 0);
	if (type == WIRE_PUSH)
		w->kept += POP_BYTES;
	char *to = writer_room(w, bytes);
	if (!to) {
		if (type == WIRE_PUSH)
			w->kept -= POP_BYTES;
		return false;
	}
	struct wire_range *r = (struct wire_range *)to;
	to = (char *)(r + 1);
	if (flags & WIRE_HAS_OP)
		to = ranges_part(to, p->seq, p->op_id);
	if (flags & WIRE_HAS_SIZES)
		to = ranges_part(to, sizes, 0);
	if (flags & WIRE_HAS_ATTR)
		to = ranges_part(to, e->category, e->colour);
	if (flags & WIRE_HAS_DOMAIN)
		to = ranges_part(to, e->domain, e->payload_kind);
	if (flags & WIRE_HAS_PAYLOAD)
		to = ranges_part(to, (uint32_t)e->payload, (uint32_t)(e->payload >> 32));
	if (flags & WIRE_HAS_RANGE)
		to = ranges_part(to, (uint32_t)range, (uint32_t)(range >> 32));
	if (n_rest)
		ranges_put_inline(to, rest, n_rest);
	r->head = (struct wire_head){.type = type, .flags = flags, .words = (uint16_t)(bytes / 8), .id = id};
	r->time_ns = now_ns(); /* as late as can be: what came before is the library's own time */
	writer_commit(w, bytes);
	return true;
}

static bool ranges_append(struct writer *w, uint8_t type, const struct event *e, uint64_t range)
{
	struct ranges_parts parts, *p = NULL;
	uint32_t id = e->id;
	size_t n = e->n;
	const char *text = id ? NULL : e->text;
	if (UNLIKELY(e->is_op)) {
		ranges_text_of(e, &n);
		parts = (struct ranges_parts){.name = n, .rest = n, .seq = e->sequence, .op_id = UINT32_MAX};
		p = &parts;
		id = id && intern_again(id) ? id : intern(ranges_text_of(e, &n), n);
	} else if (!id && n) {
		if (UNLIKELY(ranges_split(text, n, &parts))) {
			p = &parts;
			n = p->name;
		}
		id = intern_near(w->near, text, n);
		if (p && !n)
			p = NULL; /* a nameless one stays as it is */
	} else if (id && UNLIKELY(!intern_again(id))) {
		struct event whole = *e;
		whole.text = ranges_text_of(e, &whole.n);
		whole.id = 0;
		return append_full(w, type, &whole, 0, NULL, range);
	}
	if (p || e->domain || e->category || e->colour || e->payload_kind || type == WIRE_START || !id)
		return append_full(w, type, e, id, p, range);
	uint32_t kept = type == WIRE_PUSH ? POP_BYTES : 0;
	w->kept += kept;
	struct wire_range *r = writer_room(w, sizeof *r);
	if (UNLIKELY(!r)) {
		w->kept -= kept;
		return false;
	}
	r->head = writer_head(type, 0, id, sizeof *r);
	r->time_ns = now_ns();
	writer_commit(w, sizeof *r);
	return true;
}

static bool tell_begin(struct writer *w, const struct event *e)
{
	size_t n;
	const char *text = ranges_text_of(e, &n);
	bool told = n && control_begin(text, n, e->domain);
	writer_refresh(w);
	return told;
}

int range_push(const struct event *e)
{
	struct writer *w = writer_any();
	if (!w)
		return -1;
	struct depth *d = depth_of(w, e->domain);
	bool told = UNLIKELY(control_names) && d && (d->n < DEPTH_MOST || !d->told_deep) && tell_begin(w, e), written = false;
	int level = -1;
	if (LIKELY(d)) {
		if (w->on && (d->n >= DEPTH_MOST || w->kept >= KEPT_MOST))
			lose(WIRE_LOST_DEPTH, 1);
		else
			written = w->on && ranges_append(w, WIRE_PUSH, e, 0);
		level = (int)(d->n & INT32_MAX);
		ranges_set_bit(d->written, d->n, written);
		set_told(d, d->n, told);
		w->told_pushes += told;
		d->n++;
	} else if (w->on) {
		lose(WIRE_LOST_THREADS, 1);
	}
	writer_leave(w);
	return level;
}

int range_pop(uint32_t domain_)
{
	struct writer *w = writer_any();
	if (!w)
		return -1;
	struct depth *d = depth_of(w, domain_);
	int level = -1;
	if (LIKELY(d && d->n)) {
		uint32_t at = --d->n;
		level = (int)(at & INT32_MAX);
		if (LIKELY(bit(d->written, at))) {
			struct wire_pop *r = (struct wire_pop *)(w->records + w->used); /* its room was kept */
			w->kept -= POP_BYTES;
			*r = (struct wire_pop){writer_head(WIRE_POP, 0, domain_, sizeof *r), now_ns()};
			writer_commit(w, sizeof *r);
		}
		if (UNLIKELY(bit(d->told, at) || d->told_deep == at + 1)) {
			d->told_deep = at < DEPTH_MOST ? d->told_deep : 0;
			w->told_pushes--;
			control_end();
		}
	}
	writer_leave(w);
	return level;
}

/* Numbers of ranges are the thread's own, so that threads need not agree on the next one; or the program's. */
uint64_t range_start_as(const struct event *e, uint64_t number)
{
	struct writer *w = writer_any();
	if (!w)
		return 0;
	bool told = UNLIKELY(control_names) && !number && tell_begin(w, e);
	uint64_t range = number ? number : (uint64_t)w->number << 33 | (++w->ranges & UINT32_MAX) << 1 | (told ? TOLD_RANGE : 0);
	if (UNLIKELY(told))
		atomic_fetch_add_explicit(&w->told_starts, 1, memory_order_relaxed);
	if (w->on)
		ranges_append(w, WIRE_START, e, range);
	writer_leave(w);
	return range;
}

uint64_t range_start(const struct event *e) { return range_start_as(e, 0); }

void range_end(uint64_t range, uint32_t domain_)
{
	struct writer *w = writer_any();
	if (!w)
		return;
	struct wire_end r = {writer_head(WIRE_END, 0, domain_, sizeof r), w->on ? now_ns() : 0, range};
	if (w->on)
		writer_append(w, &r, sizeof r);
	if (range & TOLD_RANGE && threads_ended((uint32_t)(range >> 33)))
		control_end();
	writer_leave(w);
}

void range_mark(const struct event *e)
{
	struct writer *w = writer_any();
	if (!w)
		return;
	if (w->on)
		ranges_append(w, WIRE_MARK, e, 0);
	writer_leave(w);
}

bool range_is_written(const struct writer *w, uint32_t d)
{
	d = d < DOMAINS_MOST ? d : DOMAINS_MOST - 1;
	return d < w->n_depths && w->depth[d].n && bit(w->depth[d].written, w->depth[d].n - 1);
}

/* ---- names ---- */

uint32_t ranges_domain(const char *name, size_t n, enum wire_api api)
{
	static const char more[] = "(more domains)";
	uint32_t text = intern_surely(name, n), id = text ? atomic_load_explicit(intern_domain(text, api), memory_order_acquire) : 0;
	if (id || !text)
		return id;
	if (!slow_lock(true)) {
		lose(slow_why_not(), 1);
		return 0;
	}
	uint32_t now = atomic_load_explicit(&n_domains, memory_order_relaxed);
	id = atomic_load_explicit(intern_domain(text, api), memory_order_relaxed);
	bool fresh = !id && now < DOMAINS_MOST - 1;
	if (fresh) {
		id = now;
		domain_name[id] = text;
		atomic_store_explicit(&n_domains, now + 1, memory_order_release);
		atomic_store_explicit(intern_domain(text, api), (uint16_t)id, memory_order_release);
	}
	slow_unlock();
	if (!id) {
		id = DOMAINS_MOST - 1;
		text = intern_cstr(more);
		lose(WIRE_LOST_DOMAINS, 1);
		static _Atomic bool said;
		fresh = !atomic_exchange(&said, true);
	}
	struct wire_domain r = {writer_head(WIRE_DOMAIN, (uint8_t)api, id, sizeof r), .name = text};
	if (fresh)
		keep(&r, sizeof r, true);
	return id;
}

struct text ranges_domain_name(uint32_t id)
{
	return id && id < atomic_load_explicit(&n_domains, memory_order_acquire) ? intern_text(domain_name[id]) : (struct text){NULL, 0};
}

void ranges_category(uint32_t domain_, uint32_t category, const char *name, size_t n)
{
	struct wire_category r = {writer_head(WIRE_CATEGORY, 0, category, sizeof r), domain_, intern_surely(name, n)};
	if (r.name)
		keep(&r, sizeof r, true);
}

size_t utf8_of(const wchar_t *from, char *to, size_t room)
{
	size_t n = 0;
	for (; *from; from++) {
		uint32_t u = (uint32_t)*from;
		u = u > 0x10ffff || (u >= 0xd800 && u < 0xe000) ? 0xfffd : u;
		size_t need = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
		if (n + need > room)
			break;
		static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
		for (size_t i = need; to && i-- > 1; u >>= 6)
			to[n + i] = (char)(0x80 | (u & 0x3f));
		if (to)
			to[n] = (char)(lead[need] | u);
		n += need;
	}
	return n;
}
