/* An arena hands out memory that is freed all at once. A function that takes an arena leaves its result there;
 * one that takes none allocates nothing that outlives the call. Not safe for use by two threads at once. */
#ifndef OPSCOPE_BASE_ARENA_H
#define OPSCOPE_BASE_ARENA_H

#include "base/str.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *chunk; /* newest; NULL while empty, so {0} is a valid empty arena */
	size_t bytes;              /* reserved from the heap, in all chunks */
};

/* `size` bytes, zeroed, aligned to 16. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc_array(struct arena *a, size_t n, size_t size);
#define ARENA_ARRAY(a, n, T) ((T *)arena_zalloc_array((a), (n), sizeof(T)))

/* Copies; the copy is NUL-terminated after its n bytes. */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3), nonnull(2)));

/* Unaligned space for `n` bytes, not zeroed: for string pools. */
char *arena_bytes(struct arena *a, size_t n);

/* *from becomes empty; what was allocated in it lives as long as *to. */
void arena_adopt(struct arena *to, struct arena *from);

void arena_release(struct arena *a);
/* What it holds outlives the mem_try that it was allocated in (mem_disown). */
void arena_disown(const struct arena *a);

#endif
