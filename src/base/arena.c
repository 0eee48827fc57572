#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/param.h>

struct arena_chunk {
	struct arena_chunk *next;
	size_t cap, used;
	char data[] __attribute__((aligned(16)));
};

/* Chunks double from 4 KiB to 1 MiB: a tiny trace stays tiny, a huge one makes few calls. */
enum { CHUNK_MIN = 4 << 10, CHUNK_MAX = 1 << 20 };

static char *arena_take(struct arena *a, size_t size, size_t align)
{
	struct arena_chunk *c = a->chunk;
	if (c) {
		size_t at = (c->used + align - 1) & ~(align - 1);
		if (at <= c->cap && size <= c->cap - at) {
			c->used = at + size;
			return c->data + at;
		}
	}
	size_t cap = c ? c->cap * 2 : CHUNK_MIN;
	cap = MIN(cap, CHUNK_MAX);
	bool own = size > cap / 4; /* a big one gets a chunk of its own, behind the current, which stays in use */
	if (own)
		cap = size;
	struct arena_chunk *fresh = mem_alloc(1, sizeof *fresh + cap);
	fresh->cap = cap;
	fresh->used = size;
	a->bytes += sizeof *fresh + cap;
	if (own && c) {
		fresh->next = c->next;
		c->next = fresh;
	} else {
		fresh->next = c;
		a->chunk = fresh;
	}
	return fresh->data;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return memset(arena_take(a, size ? size : 1, 16), 0, size);
}

void *arena_zalloc_array(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = (size_t)-1 / 2;
	return arena_alloc(a, bytes);
}

char *arena_bytes(struct arena *a, size_t n)
{
	return arena_take(a, n, 1);
}

struct str arena_str(struct arena *a, struct str s)
{
	char *p = arena_take(a, s.n + 1, 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return (struct str){p, s.n};
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	n = MAX(n, 0);
	char *p = arena_take(a, (size_t)n + 1, 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return (struct str){p, (size_t)n};
}

void arena_adopt(struct arena *to, struct arena *from)
{
	struct arena_chunk *last = from->chunk;
	if (!last)
		return;
	while (last->next)
		last = last->next;
	if (to->chunk) { /* behind the newest, which stays in use */
		last->next = to->chunk->next;
		to->chunk->next = from->chunk;
	} else {
		to->chunk = from->chunk;
	}
	to->bytes += from->bytes;
	*from = (struct arena){0};
}

void arena_disown(const struct arena *a)
{
	for (struct arena_chunk *c = a->chunk; c; c = c->next)
		mem_disown(c);
}

void arena_release(struct arena *a)
{
	for (struct arena_chunk *c = a->chunk, *next; c; c = next) {
		next = c->next;
		mem_free(c);
	}
	*a = (struct arena){0};
}
