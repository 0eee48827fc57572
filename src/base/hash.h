/* Hashing of bytes (XXH3) and maps from 64-bit ids to 32-bit row numbers. */
#ifndef OPSCOPE_BASE_HASH_H
#define OPSCOPE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n);
static inline uint32_t hash_bytes32(const void *p, size_t n)
{
	uint64_t h = hash_bytes(p, n);
	return (uint32_t)(h ^ (h >> 32));
}

static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

/* Map from int64 key to uint32 value. Keys that lie close together (correlation ids do) are addressed directly;
 * scattered ones are hashed. Life cycle: init with the key range and count if known, put/get, release. */
struct idmap {
	int64_t min;       /* direct form: value of key k is direct[k - min] */
	uint64_t span;     /* direct form: number of slots; 0 = hashed form */
	uint32_t *direct;
	int64_t *key;      /* hashed form */
	uint32_t *value;   /* hashed form; IDMAP_NONE = free */
	uint64_t n, n_slots;
};

#define IDMAP_NONE UINT32_MAX

/* `min`, `max`: the smallest and largest key that will come; `n`: how many keys at most (min > max: none). */
void idmap_init(struct idmap *m, int64_t min, int64_t max, uint64_t n);
/* Sets key -> value, replacing what was there. value must not be IDMAP_NONE. */
void idmap_put(struct idmap *m, int64_t key, uint32_t value);
/* The value, or IDMAP_NONE. */
uint32_t idmap_get(const struct idmap *m, int64_t key);
void idmap_release(struct idmap *m);

/* Set of int64 ids, with the life cycle of a map. Ids that lie close together are bits, of which a cache holds those of a million ids. */
struct idset {
	int64_t min;
	uint64_t span;     /* the id k is bit k - min; 0 = `others` has the ids */
	uint64_t *bits;
	struct idmap others;
};

void idset_init(struct idset *s, int64_t min, int64_t max, uint64_t n);
void idset_put(struct idset *s, int64_t id);
bool idset_has(const struct idset *s, int64_t id);
void idset_release(struct idset *s);

#endif
