#define XXH_INLINE_ALL
#include "base/hash.h"

#include "base/mem.h"

#include <string.h>
#include <xxhash.h>

uint64_t hash_bytes(const void *p, size_t n)
{
	return n ? XXH3_64bits(p, n) : 0;
}

static void hashed_init(struct idmap *m, uint64_t n)
{
	uint64_t slots = 16;
	while (slots < n * 2)
		slots *= 2;
	m->n_slots = slots;
	m->key = NEW_ARRAY_RAW(slots, int64_t);
	m->value = NEW_ARRAY_RAW(slots, uint32_t);
	memset(m->value, 0xff, slots * sizeof *m->value);
}

void idmap_init(struct idmap *m, int64_t min, int64_t max, uint64_t n)
{
	*m = (struct idmap){.min = min};
	uint64_t range = min <= max ? (uint64_t)max - (uint64_t)min : 0;
	if (min <= max && range < n * 8 + 1024) { /* ids of real recordings leave gaps: up to eight places for each */
		m->span = range + 1;
		m->direct = NEW_ARRAY_RAW(m->span, uint32_t);
		memset(m->direct, 0xff, m->span * sizeof *m->direct);
	} else {
		hashed_init(m, n);
	}
}

static uint64_t find_slot(const struct idmap *m, int64_t key)
{
	uint64_t at = hash_u64((uint64_t)key) & (m->n_slots - 1);
	while (m->value[at] != IDMAP_NONE && m->key[at] != key)
		at = (at + 1) & (m->n_slots - 1);
	return at;
}

void idmap_put(struct idmap *m, int64_t key, uint32_t value)
{
	if (m->span) {
		uint64_t at = (uint64_t)key - (uint64_t)m->min;
		if (at < m->span)
			m->direct[at] = value;
		return;
	}
	if ((m->n + 1) * 2 > m->n_slots) {
		struct idmap bigger = {.min = m->min};
		hashed_init(&bigger, m->n * 2 + 16);
		for (uint64_t i = 0; i < m->n_slots; i++)
			if (m->value[i] != IDMAP_NONE)
				idmap_put(&bigger, m->key[i], m->value[i]);
		idmap_release(m);
		*m = bigger;
	}
	uint64_t at = find_slot(m, key);
	m->n += m->value[at] == IDMAP_NONE;
	m->key[at] = key;
	m->value[at] = value;
}

uint32_t idmap_get(const struct idmap *m, int64_t key)
{
	if (m->span) {
		uint64_t at = (uint64_t)key - (uint64_t)m->min;
		return at < m->span ? m->direct[at] : IDMAP_NONE;
	}
	return m->n_slots ? m->value[find_slot(m, key)] : IDMAP_NONE;
}

void idmap_release(struct idmap *m)
{
	mem_free(m->direct);
	mem_free(m->key);
	mem_free(m->value);
	*m = (struct idmap){0};
}

enum { IDSET_WORD = 64 };

void idset_init(struct idset *s, int64_t min, int64_t max, uint64_t n)
{
	enum { PLACES = 128 }; /* bits of an id at most: less than a map's slot takes */
	*s = (struct idset){.min = min};
	const uint64_t range = min <= max ? (uint64_t)max - (uint64_t)min : 0;
	if (min > max || range >= n * PLACES + IDSET_WORD) {
		idmap_init(&s->others, min, max, n);
		return;
	}
	s->span = range + 1;
	s->bits = NEW_ARRAY(range / IDSET_WORD + 1, uint64_t);
}

void idset_put(struct idset *s, int64_t id)
{
	const uint64_t at = (uint64_t)id - (uint64_t)s->min;
	if (!s->span)
		idmap_put(&s->others, id, 0);
	else if (at < s->span)
		s->bits[at / IDSET_WORD] |= (uint64_t)1 << at % IDSET_WORD;
}

bool idset_has(const struct idset *s, int64_t id)
{
	const uint64_t at = (uint64_t)id - (uint64_t)s->min;
	if (!s->span)
		return idmap_get(&s->others, id) != IDMAP_NONE;
	return at < s->span && s->bits[at / IDSET_WORD] >> at % IDSET_WORD & 1;
}

void idset_release(struct idset *s)
{
	mem_free(s->bits);
	idmap_release(&s->others);
	*s = (struct idset){0};
}
