#include "keep.h"

#include "intern.h"
#include "segment.h"
#include "start.h"
#include "sys.h"

#include <stdarg.h>
#include <string.h>

/* The shortest of those that are remembered has 16 bytes: half of the slots stay free. */
enum { AGAIN_MOST = 2 << 20, AGAIN_SLOTS = 2 * AGAIN_MOST / 16, NOTES_MOST = 128, NOTE_BYTES = 1024 };

static struct {
	struct wire_chunk *chunk;
	uint32_t generation;
	uint32_t used, size;
	char *again;               /* records for forked children; each stands here once */
	uint32_t *again_at;        /* by hash: where in `again`, + 1 */
	uint32_t again_bytes;
	_Atomic uint32_t noted[NOTES_MOST]; /* kinds, looked at without the lock */
	_Atomic uint32_t n_noted;
} k;

static bool take_chunk(void)
{
	uint32_t bytes = k.chunk ? WIRE_BLOCK : 4 * WIRE_GRAIN; /* a process that says little needs little */
	struct wire_chunk *c = segment_chunk(WIRE_KEEP, bytes, 0, 0, 0);
	if (!c)
		return false;
	k.chunk = c;
	k.used = 0;
	k.size = bytes - (uint32_t)sizeof *c;
	return true;
}

void *keep_room(uint32_t bytes)
{
	if (k.generation != segment_generation()) {
		k.chunk = NULL;
		k.used = k.size = 0;
		k.generation = segment_generation();
	}
	while (k.used + bytes > k.size)
		if (!take_chunk())
			return NULL;
	return (char *)(k.chunk + 1) + k.used;
}

void keep_commit(uint32_t bytes)
{
	k.used += bytes;
	atomic_store_explicit((_Atomic uint32_t *)&k.chunk->committed, k.used, memory_order_release);
}

/* The texts that a record names. */
static bool write_texts(const struct wire_head *h)
{
	switch (h->type) {
	case WIRE_DOMAIN: return intern_write_locked(((const struct wire_domain *)h)->name);
	case WIRE_CATEGORY: return intern_write_locked(((const struct wire_category *)h)->name);
	case WIRE_RESOURCE:
	case WIRE_DEVICE: return intern_write_locked(h->id);
	default: return true;
	}
}

static bool write_one(const void *record, uint32_t bytes)
{
	void *to = keep_room(bytes);
	if (!to)
		return false;
	memcpy(to, record, bytes);
	keep_commit(bytes);
	return true;
}

enum remembered { REMEMBERED, KNOWN, NO_PLACE };

static enum remembered keep_remember(const void *record, uint32_t bytes)
{
	if (!k.again_at) {
		char *again = sys_memory(AGAIN_MOST);
		k.again_at = again ? sys_memory(AGAIN_SLOTS * sizeof *k.again_at) : NULL;
		if (again && !k.again_at)
			munmap(again, AGAIN_MOST);
		if (!k.again_at)
			return NO_PLACE;
		k.again = again;
	}
	uint64_t hash = bytes, word;
	for (uint32_t i = 0; i < bytes; i += 8) {
		memcpy(&word, (const char *)record + i, 8);
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 31;
	}
	uint32_t slot = (uint32_t)hash % AGAIN_SLOTS;
	for (; k.again_at[slot]; slot = (slot + 1) % AGAIN_SLOTS) {
		const char *known = k.again + k.again_at[slot] - 1;
		if (((const struct wire_head *)(const void *)known)->words * 8u == bytes && memcmp(known, record, bytes) == 0)
			return KNOWN;
	}
	if (k.again_bytes + bytes > AGAIN_MOST)
		return NO_PLACE;
	memcpy(k.again + k.again_bytes, record, bytes);
	k.again_at[slot] = k.again_bytes + 1;
	k.again_bytes += bytes;
	return REMEMBERED;
}

bool keep(const void *record, uint32_t bytes, bool again)
{
	bool waits = again && start_keeps();
	if (!waits && (!start_inside() || !segment_header()))
		return false;
	if (!slow_lock(true)) {
		lose(slow_why_not(), 1);
		return false;
	}
	if (waits && !start_keeps()) { /* a segment is being made, and may have what was remembered until now */
		slow_unlock();
		return keep(record, bytes, again);
	}
	enum remembered r = again ? keep_remember(record, bytes) : REMEMBERED;
	bool ok = r == KNOWN || (r == REMEMBERED && (waits || write_one(record, bytes)));
	slow_unlock();
	if (!ok)
		lose(r == NO_PLACE ? WIRE_LOST_DOMAINS : segment_why_full(), 1);
	return ok;
}

static bool keep_is_of_device(const struct wire_head *h) { return h->type == WIRE_DEVICE || h->type == WIRE_CONTEXT || h->type == WIRE_STREAM; }

void keep_again(bool forked)
{
	if (!slow_lock(true)) {
		lose(slow_why_not(), 1);
		return;
	}
	for (uint32_t at = 0; at < k.again_bytes;) {
		const struct wire_head *h = (const void *)(k.again + at);
		if (!(forked && keep_is_of_device(h)) && (!write_texts(h) || !write_one(h, h->words * 8u)))
			lose(segment_why_full(), 1);
		at += h->words * 8u;
	}
	atomic_store_explicit(&k.n_noted, 0, memory_order_release);
	slow_unlock();
}

void keep_meta(const char *key, const char *value, size_t n)
{
	struct wire_meta m = {writer_head(WIRE_META, 0, intern_surely(key, strlen(key)), sizeof m), .value = intern_surely(value, n)};
	if (m.head.id && m.value)
		keep(&m, sizeof m, false);
}

void keep_meta_u64(const char *key, uint64_t value)
{
	char room[SYS_DIGITS], *digits = sys_digits(room, value);
	keep_meta(key, digits, strlen(digits));
}

static bool is_noted(uint32_t kind)
{
	uint32_t n = atomic_load_explicit(&k.n_noted, memory_order_acquire);
	for (uint32_t i = 0; i < n; i++)
		if (atomic_load_explicit(&k.noted[i], memory_order_relaxed) == kind)
			return true;
	return false;
}

/* Whether a kind is told for the first time, and may be. Some are said with each of a million calls: only the first waits for anything. */
static bool first_of_kind(uint32_t kind)
{
	if (!kind || is_noted(kind) || !slow_lock(true))
		return false;
	uint32_t n = atomic_load_explicit(&k.n_noted, memory_order_relaxed);
	bool first = n < NOTES_MOST && !is_noted(kind);
	if (n == NOTES_MOST && !is_noted(kind))
		lose(WIRE_LOST_STRINGS, 1);
	if (first) {
		atomic_store_explicit(&k.noted[n], kind, memory_order_relaxed);
		atomic_store_explicit(&k.n_noted, n + 1, memory_order_release);
	}
	slow_unlock();
	return first;
}

/* The pieces, one behind the other; the length. What does not fit is three points. */
static size_t put_together(char text[NOTE_BYTES], va_list pieces)
{
	static const char more[] = "...";
	size_t n = 0, room = NOTE_BYTES - (sizeof more - 1);
	for (const char *p; (p = va_arg(pieces, const char *));)
		for (; *p; p++) {
			if (n < room) {
				text[n++] = *p;
				continue;
			}
			while (n && (*p & 0xc0) == 0x80) /* not in the middle of a character */
				p = &text[--n];
			memcpy(text + n, more, sizeof more - 1);
			return n + sizeof more - 1;
		}
	return n;
}

void note(const char *kind, int loss, ...)
{
	char text[NOTE_BYTES];
	va_list pieces;
	uint32_t id = start_inside() && segment_header() ? intern_surely(kind, strlen(kind)) : 0;
	if (!first_of_kind(id))
		return;
	struct wire_note r = {writer_head(WIRE_NOTE, 0, id, sizeof r), now_ns(), .loss = loss};
	va_start(pieces, loss);
	r.text = intern_surely(text, put_together(text, pieces));
	va_end(pieces);
	keep(&r, sizeof r, false);
}
