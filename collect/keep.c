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
	uint32_t noted[NOTES_MOST];
	uint32_t n_noted;
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
static void write_texts(const struct wire_head *h)
{
	if (h->type == WIRE_DOMAIN)
		intern_write_locked(((const struct wire_domain *)h)->name);
	else if (h->type == WIRE_CATEGORY)
		intern_write_locked(((const struct wire_category *)h)->name);
	else if (h->type == WIRE_RESOURCE)
		intern_write_locked(h->id);
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

static enum remembered remember(const void *record, uint32_t bytes)
{
	if (!k.again_at) {
		char *again = sys_memory(AGAIN_MOST);
		if (!again || !(k.again_at = sys_memory(AGAIN_SLOTS * sizeof *k.again_at)))
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
	if (!start_inside() || !segment_header())
		return false;
	if (!slow_lock(true)) {
		lose(WIRE_LOST_BUSY, 1);
		return false;
	}
	enum remembered r = again ? remember(record, bytes) : REMEMBERED;
	bool ok = r == KNOWN || (r == REMEMBERED && write_one(record, bytes));
	slow_unlock();
	if (!ok)
		lose(r == NO_PLACE ? WIRE_LOST_DOMAINS : segment_why_full(), 1);
	return ok;
}

void keep_again(void)
{
	if (!slow_lock(true))
		return;
	for (uint32_t at = 0; at < k.again_bytes;) {
		const struct wire_head *h = (const void *)(k.again + at);
		write_texts(h);
		write_one(h, h->words * 8u);
		at += h->words * 8u;
	}
	k.n_noted = 0;
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
	char digits[24], *d = digits + sizeof digits;
	do {
		*--d = (char)('0' + value % 10);
	} while (value /= 10);
	keep_meta(key, d, (size_t)(digits + sizeof digits - d));
}

/* Whether a kind is told for the first time. */
static bool first_of_kind(uint32_t kind)
{
	bool first = kind && slow_lock(true);
	if (!first)
		return false;
	for (uint32_t i = 0; i < k.n_noted; i++)
		first = first && k.noted[i] != kind;
	if (first && k.n_noted < NOTES_MOST)
		k.noted[k.n_noted++] = kind;
	slow_unlock();
	return first;
}

void note(const char *kind, int loss, ...)
{
	char text[NOTE_BYTES];
	size_t n = 0;
	va_list pieces;
	if (!start_inside())
		return;
	va_start(pieces, loss);
	for (const char *p; (p = va_arg(pieces, const char *));)
		while (*p && n < sizeof text)
			text[n++] = *p++;
	va_end(pieces);
	struct wire_note r = {writer_head(WIRE_NOTE, 0, intern_surely(kind, strlen(kind)), sizeof r), now_ns(), .loss = loss};
	if (!segment_header() || !first_of_kind(r.head.id))
		return;
	r.text = intern_surely(text, n);
	keep(&r, sizeof r, false);
}
