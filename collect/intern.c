/* Texts by number. Looking one up takes no lock; a new one is entered under the slow lock. The texts are kept in memory of our own, since a forked
 * child has to write them again and does not have the parent's file. */
#include "intern.h"

#include "keep.h"
#include "segment.h"
#include "start.h"
#include "sys.h"

#include <string.h>

enum {
	TEXTS_MOST = 1 << 18,
	BYTES_MOST = 96 << 20,
	BYTES_LEAST = 1 << 20,
	SLOTS_FIRST = 1 << 12,
	LONGEST = WIRE_MAX_STRING,
};

struct entry {
	const char *p;
	uint32_t bytes;
	_Atomic uint32_t generation;    /* of the segment in which the text stands */
	bool cut;
	_Atomic uint16_t domain[3];     /* by enum wire_api */
};

struct slots {
	uint32_t mask;
	_Atomic uint64_t slot[];        /* hash << 32 | id; 0 = free */
};

static struct entry *entry;
static char *bytes;
static size_t bytes_most, n_bytes, ready_entries, ready_bytes;
static _Atomic uint32_t n_texts;        /* changed under the lock, when the text is there */
static _Atomic(struct slots *) table;

static uint64_t hash_of(const char *p, size_t n)
{
	uint64_t h = n * UINT64_C(0x9e3779b97f4a7c15), v = 0;
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	v = 0;
	memcpy(&v, p, n);
	h = (h ^ v) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

/* 0 = not there. */
static uint32_t intern_find_(const struct slots *t, uint64_t hash, const char *p, size_t n, bool cut)
{
	if (!t)
		return 0;
	for (uint32_t i = (uint32_t)hash;; i++) {
		uint64_t s = atomic_load_explicit(&t->slot[i & t->mask], memory_order_acquire);
		if (!s)
			return 0;
		const struct entry *e = &entry[(uint32_t)s];
		if (s >> 32 == hash >> 32 && e->bytes == n && e->cut == cut && memcmp(e->p, p, n) == 0)
			return (uint32_t)s;
	}
}

static void intern_enter(struct slots *t, uint64_t hash, uint32_t id)
{
	uint32_t i = (uint32_t)hash;
	while (atomic_load_explicit(&t->slot[i & t->mask], memory_order_relaxed))
		i++;
	atomic_store_explicit(&t->slot[i & t->mask], hash >> 32 << 32 | id, memory_order_release);
}

/* Tables that were outgrown stay: others may be looking into them. All of them together are smaller than the last one. */
static struct slots *grown(struct slots *t)
{
	uint32_t n = t ? (t->mask + 1) * 2 : SLOTS_FIRST;
	if (t && n_texts < n / 4)
		return t;
	struct slots *more = sys_memory(sizeof *more + n * sizeof more->slot[0]);
	if (!more)
		return n_texts < n / 2 - 1 ? t : NULL;
	more->mask = n - 1;
	for (uint32_t i = 1; i <= n_texts; i++)
		intern_enter(more, hash_of(entry[i].p, entry[i].bytes), i);
	atomic_store_explicit(&table, more, memory_order_release);
	return more;
}

bool intern_write_locked(uint32_t id)
{
	struct entry *e = &entry[id];
	uint32_t now = segment_generation();
	if (!id || atomic_load_explicit(&e->generation, memory_order_relaxed) == now || start_keeps())
		return true; /* or when there is a segment */
	struct wire_string s = {.bytes = e->bytes};
	uint32_t n = (uint32_t)(sizeof s + e->bytes + 7) & ~7u;
	s.head = writer_head(WIRE_STRING, e->cut ? WIRE_CUT : 0, id, n);
	char *to = keep_room(n);
	if (!to)
		return false;
	memset(to + n - 8, 0, 8);
	memcpy(to, &s, sizeof s);
	memcpy(to + sizeof s, e->p, e->bytes);
	keep_commit(n);
	atomic_store_explicit(&e->generation, now, memory_order_release);
	return true;
}

/* Both or none: what is not used is the program's. Where it may not have so many addresses, fewer. */
static bool has_tables(void)
{
	if (entry)
		return true;
	struct entry *e = sys_reserve((TEXTS_MOST + 1) * sizeof *e);
	if (!e)
		return false;
	for (bytes_most = sys_fair(BYTES_MOST); bytes_most >= BYTES_LEAST && !(bytes = sys_reserve(bytes_most)); bytes_most /= 2)
		;
	if (bytes)
		entry = e;
	else
		sys_release(e, (TEXTS_MOST + 1) * sizeof *e);
	return bytes;
}

static bool has_place(size_t n)
{
	return has_tables() && n_texts < TEXTS_MOST && n_bytes + n + 1 <= bytes_most && sys_ready(entry, &ready_entries, (n_texts + 2) * sizeof *entry, true) &&
	       sys_ready(bytes, &ready_bytes, n_bytes + n + 1, true);
}

static uint32_t intern_add(uint64_t hash, const char *p, size_t n, bool cut)
{
	struct slots *t = has_place(n) ? grown(atomic_load_explicit(&table, memory_order_relaxed)) : NULL;
	if (!t)
		return 0;
	uint32_t id = n_texts + 1;
	char *to = bytes + n_bytes;
	memcpy(to, p, n);
	to[n] = 0;
	entry[id] = (struct entry){.p = to, .bytes = (uint32_t)n, .cut = cut};
	if (!intern_write_locked(id))
		return 0;
	n_bytes += n + 1;
	atomic_store_explicit(&n_texts, id, memory_order_release);
	intern_enter(t, hash, id);
	return id;
}

/* Ids come back from programs: not each is one. */
static bool intern_is_text(uint32_t id) { return id && id <= atomic_load_explicit(&n_texts, memory_order_acquire); }

uint32_t intern_given(uint64_t id)
{
	if (LIKELY(!id || (id <= UINT32_MAX && intern_is_text((uint32_t)id))))
		return (uint32_t)id;
	note("unknown-text", true, "texts were called by handles or numbers that no text has: those ranges have no name", NULL);
	return 0;
}

bool intern_again(uint32_t id)
{
	if (!id)
		return true;
	if (!intern_is_text(id) || !start_inside())
		return false;
	if (LIKELY(atomic_load_explicit(&entry[id].generation, memory_order_acquire) == segment_generation()))
		return true;
	if (!slow_lock(false))
		return false;
	bool ok = intern_write_locked(id);
	slow_unlock();
	return ok;
}

size_t intern_cut(const char *p)
{
	size_t n = LONGEST;
	while (n > LONGEST - 4 && (p[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static uint32_t intern_in(const char *p, size_t n, bool surely)
{
	bool cut = n > LONGEST;
	if (!n || !((surely ? start_keeps() : start_waits()) || start_inside()))
		return 0;
	if (cut)
		n = intern_cut(p);
	uint64_t hash = hash_of(p, n);
	uint32_t id = intern_find_(atomic_load_explicit(&table, memory_order_acquire), hash, p, n, cut);
	if (LIKELY(id))
		return start_keeps() || intern_again(id) ? id : 0;
	enum wire_loss why = WIRE_LOST_STRINGS;
	if (slow_lock(surely)) {
		id = intern_find_(atomic_load_explicit(&table, memory_order_acquire), hash, p, n, cut);
		if (!id)
			id = intern_add(hash, p, n, cut);
		slow_unlock();
	} else {
		why = slow_why_not();
	}
	if (!id && surely)
		lose(why, 1);
	return id;
}

uint32_t intern(const char *p, size_t n) { return intern_in(p, n, false); }
uint32_t intern_surely(const char *p, size_t n) { return intern_in(p, n, true); }
uint32_t intern_cstr(const char *text) { return text ? intern_in(text, strlen(text), false) : 0; }

/* The slot is not 0 only where there is an entry. A text that lives elsewhere by now is another one at that address: it is compared. */
uint32_t intern_near(struct near_text *near, const char *text, size_t n)
{
	uintptr_t at = (uintptr_t)text;
	struct near_text *slot = &near[(at ^ at >> 6 ^ at >> 12) % NEAR_TEXTS];
	const struct entry *e = &entry[slot->id];
	if (LIKELY(slot->at == at && slot->id && e->bytes == n && memcmp(e->p, text, n) == 0 &&
	           atomic_load_explicit(&e->generation, memory_order_acquire) == segment_generation()))
		return slot->id;
	uint32_t id = intern_in(text, n, false);
	if (id)
		*slot = (struct near_text){at, id};
	return id;
}

struct text intern_text(uint32_t id)
{
	if (!intern_is_text(id))
		return (struct text){NULL, 0};
	return (struct text){entry[id].p, entry[id].bytes};
}

_Atomic uint16_t *intern_domain(uint32_t id, enum wire_api api) { return &entry[id].domain[api]; }
