#include "base/intern.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>

static void rehash(struct intern *t, uint32_t n_slots)
{
	mem_free(t->slot);
	t->slot = NEW_ARRAY_RAW(n_slots, uint32_t);
	memset(t->slot, 0xff, (size_t)n_slots * sizeof *t->slot);
	t->n_slots = n_slots;
	for (uint32_t id = 0; id < t->n; id++) {
		uint32_t at = t->entry[id].hash & (n_slots - 1);
		while (t->slot[at] != INTERN_NONE)
			at = (at + 1) & (n_slots - 1);
		t->slot[at] = id;
	}
}

void intern_init(struct intern *t)
{
	*t = (struct intern){0};
	rehash(t, 256);
	intern_put(t, "", 0);
}

void intern_disown(const struct intern *t)
{
	arena_disown(&t->bytes);
	mem_disown(t->entry);
	mem_disown(t->slot);
}

void intern_release(struct intern *t)
{
	arena_release(&t->bytes);
	mem_free(t->entry);
	mem_free(t->slot);
	*t = (struct intern){0};
}

/* The slot that holds these bytes, or the free one where they belong. */
static uint32_t probe(const struct intern *t, const char *p, uint32_t n, uint32_t hash)
{
	uint32_t at = hash & (t->n_slots - 1);
	for (;;) {
		uint32_t id = t->slot[at];
		if (id == INTERN_NONE)
			return at;
		const struct intern_entry *e = &t->entry[id];
		if (e->hash == hash && e->n == n && memcmp(e->p, p, n) == 0)
			return at;
		at = (at + 1) & (t->n_slots - 1);
	}
}

/* Puts what is not there into the slot that probe gave for it. */
static uint32_t intern_add(struct intern *t, uint32_t at, const char *p, uint32_t n, uint32_t hash)
{
	if (t->n == INTERN_NONE - 1 || t->n_slots >= 1u << 31) {
		t->dropped++;
		return 0;
	}
	MEM_GROW(t->entry, t->cap, t->n + 1);
	char *copy = arena_bytes(&t->bytes, (size_t)n + 1);
	memcpy(copy, p, n);
	copy[n] = 0;
	uint32_t id = t->n++;
	t->entry[id] = (struct intern_entry){copy, n, hash};
	t->slot[at] = id;
	if (t->n > t->n_slots / 2)
		rehash(t, t->n_slots * 2);
	return id;
}

static inline uint32_t intern_put_(struct intern *t, const char *p, uint32_t n, uint32_t hash)
{
	uint32_t at = probe(t, p, n, hash);
	return t->slot[at] != INTERN_NONE ? t->slot[at] : intern_add(t, at, p, n, hash);
}

uint32_t intern_put_hashed(struct intern *t, const char *p, uint32_t n, uint32_t hash)
{
	return n == 0 && t->n ? 0 : intern_put_(t, p, n, hash);
}

uint32_t intern_put(struct intern *t, const char *p, size_t n)
{
	if (n == 0 && t->n)
		return 0;
	if (n > UINT32_MAX)
		n = UINT32_MAX;
	return intern_put_(t, p, (uint32_t)n, hash_bytes32(p, n));
}

static inline uint64_t intern_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint32_t intern_hash_key(const char *p, size_t n)
{
	uint64_t h = n, word;
	uint32_t half;
	for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
		memcpy(&word, p, sizeof word);
		h = intern_mix(h, word);
	}
	if (n >= sizeof half) {
		memcpy(&half, p, sizeof half);
		h = intern_mix(h, half);
		p += sizeof half;
		n -= sizeof half;
	}
	for (; n; n--)
		h = intern_mix(h, (unsigned char)*p++);
	return (uint32_t)(h ^ h >> 32);
}

static bool intern_same_key(const char *a, const char *b, size_t n)
{
	uint64_t x, y;
	uint32_t u, v;
	for (; n >= sizeof x; a += sizeof x, b += sizeof x, n -= sizeof x) {
		memcpy(&x, a, sizeof x);
		memcpy(&y, b, sizeof y);
		if (x != y)
			return false;
	}
	if (n != sizeof u)
		return !n || memcmp(a, b, n) == 0;
	memcpy(&u, a, sizeof u);
	memcpy(&v, b, sizeof v);
	return u == v;
}

bool intern_is_key(const struct intern *t, uint32_t id, const void *key, size_t n)
{
	return id < t->n && t->entry[id].n == n && intern_same_key(t->entry[id].p, key, n);
}

/* The slot that holds this key, or the free one where it belongs. */
static inline uint32_t probe_key(const struct intern *t, const void *key, size_t n, uint32_t hash)
{
	uint32_t at = hash & (t->n_slots - 1);
	for (uint32_t id; (id = t->slot[at]) != INTERN_NONE; at = (at + 1) & (t->n_slots - 1))
		if (t->entry[id].hash == hash && t->entry[id].n == n && intern_same_key(t->entry[id].p, key, n))
			break;
	return at;
}

uint32_t intern_put_key(struct intern *t, const void *key, size_t n)
{
	assert(n && n <= UINT32_MAX);
	const uint32_t hash = intern_hash_key(key, n), at = probe_key(t, key, n, hash);
	return t->slot[at] != INTERN_NONE ? t->slot[at] : intern_add(t, at, key, (uint32_t)n, hash);
}

uint32_t intern_find_key(const struct intern *t, const void *key, size_t n)
{
	return t->slot[probe_key(t, key, n, intern_hash_key(key, n))];
}

uint32_t intern_find(const struct intern *t, struct str s)
{
	if (s.n > UINT32_MAX || !t->n_slots)
		return INTERN_NONE;
	return t->slot[probe(t, s.n ? s.p : "", (uint32_t)s.n, hash_bytes32(s.p, s.n))];
}

/* Looking up takes 1.5 steps on average at this load; this many mean hashes that were made to collide. */
enum { LOAD_STEPS = 32 };

static bool fill_slots(struct intern *t)
{
	uint64_t left = (uint64_t)LOAD_STEPS * t->n + 4096;
	for (uint32_t id = 0; id < t->n; id++) {
		uint32_t at = t->entry[id].hash & (t->n_slots - 1);
		while (t->slot[at] != INTERN_NONE) {
			if (!--left)
				return false;
			at = (at + 1) & (t->n_slots - 1);
		}
		t->slot[at] = id;
	}
	return true;
}

bool intern_load(struct intern *t, uint32_t n, const uint32_t *length, const uint32_t *hash, const char *pool,
                 size_t pool_n)
{
	if (n == 0 || n >= 1u << 30 || length[0] != 0)
		return false;
	struct intern fresh = {.n = n, .cap = n, .n_slots = 256, .entry = NEW_ARRAY_RAW(n, struct intern_entry)};
	bool good = true;
	size_t at = 0;
	for (uint32_t id = 0; good && id < n; id++) {
		good = length[id] < pool_n - at && pool[at + length[id]] == 0;
		fresh.entry[id] = (struct intern_entry){pool + at, length[id], hash[id]};
		at += good ? (size_t)length[id] + 1 : 0;
	}
	while (fresh.n_slots / 2 < n)
		fresh.n_slots *= 2;
	fresh.slot = NEW_ARRAY_RAW(fresh.n_slots, uint32_t);
	memset(fresh.slot, 0xff, (size_t)fresh.n_slots * sizeof *fresh.slot);
	if (!good || at != pool_n || !fill_slots(&fresh)) {
		mem_free(fresh.entry);
		mem_free(fresh.slot);
		return false;
	}
	mem_free(t->entry);
	mem_free(t->slot);
	fresh.bytes = t->bytes;
	*t = fresh;
	return true;
}

size_t intern_bytes(const struct intern *t)
{
	return t->bytes.bytes + (size_t)t->cap * sizeof *t->entry + (size_t)t->n_slots * sizeof *t->slot;
}
