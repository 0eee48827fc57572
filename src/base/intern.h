/* Strings become 32-bit ids: equal bytes give equal ids, ids count up from 0 in order of first appearance, and id 0 is
 * always the empty string. The bytes never move while the interner lives. At most 2^32 - 2 strings; a full interner
 * gives back id 0 and counts the loss in `dropped`.
 * Life cycle: intern_init, intern_put..., intern_release. Reading from several threads is safe once no one writes. */
#ifndef OPSCOPE_BASE_INTERN_H
#define OPSCOPE_BASE_INTERN_H

#include "base/arena.h"

struct intern_entry {
	const char *p;
	uint32_t n;
	uint32_t hash;
};

struct intern {
	struct arena bytes;
	struct intern_entry *entry;
	uint32_t *slot; /* open addressing, linear probing, load <= 1/2; UINT32_MAX = free */
	uint32_t n, cap, n_slots;
	uint64_t dropped;
};

#define INTERN_NONE UINT32_MAX

void intern_init(struct intern *t);
void intern_release(struct intern *t);
void intern_disown(const struct intern *t); /* as arena_disown */

/* The id of these bytes, copying them in at first sight. Strings of 4 GiB or more are cut. */
uint32_t intern_put(struct intern *t, const char *p, size_t n);
/* The same of bytes whose hash another interner holds: n < 2^32. */
uint32_t intern_put_hashed(struct intern *t, const char *p, uint32_t n, uint32_t hash);
static inline uint32_t intern_str(struct intern *t, struct str s) { return intern_put(t, s.p, s.n); }

/* The same for a key made of a few numbers, n > 0 bytes, with a cheaper hash. Do not mix keys with strings in one table; intern_find
 * and intern_load are for strings. */
uint32_t intern_put_key(struct intern *t, const void *key, size_t n);
/* Whether the key with this id, which may not exist, is that one. */
bool intern_is_key(const struct intern *t, uint32_t id, const void *key, size_t n);
/* As intern_find, for such a key. */
uint32_t intern_find_key(const struct intern *t, const void *key, size_t n);

/* The id if these bytes are known, else INTERN_NONE. Never changes the table. */
uint32_t intern_find(const struct intern *t, struct str s);

static inline struct str intern_get(const struct intern *t, uint32_t id)
{
	return id < t->n ? (struct str){t->entry[id].p, t->entry[id].n} : (struct str){"", 0};
}

/* Takes over `n` strings that an interner held before: string i is `length[i]` bytes of `pool` and a NUL, one behind the
 * other, with its hash. *t is fresh from intern_init; `pool` came from arena_bytes(&t->bytes, ...). The strings keep
 * their ids and are not hashed again. False, and *t as before, when they do not fit together: string 0 is not empty, a NUL is
 * missing, or so many hashes are equal that looking one up would not end. */
bool intern_load(struct intern *t, uint32_t n, const uint32_t *length, const uint32_t *hash, const char *pool,
                 size_t pool_n);

/* Heap bytes held, for memory accounting. */
size_t intern_bytes(const struct intern *t);

#endif
