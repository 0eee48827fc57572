#include "base/mem.h"

#include "base/mem_own.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static size_t mem_product(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		mem_fail((size_t)-1);
	return bytes;
}

/* Columns of millions of rows are met page by page, and each first meeting costs about as much as filling the page: big
 * pages make that a five-hundredth. The whole of the block's pages is asked for: a mapping of which only a part is marked
 * could not be resized without copying it. */
static void *with_big_pages(void *p, size_t bytes)
{
	enum { PAGE = 4096, WORTH_IT = 8 << 20 };
	if (p && bytes >= WORTH_IT) {
		uintptr_t from = (uintptr_t)p & ~(uintptr_t)(PAGE - 1), to = ((uintptr_t)p + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
		madvise((void *)from, to - from, MADV_HUGEPAGE); /* where the system has none, nothing is lost */
	}
	return p;
}

/* A fresh block, or NULL. */
static void *mem_give(void *p, size_t bytes)
{
	if (!p || !mem_note(p)) {
		free(p);
		mem_fail(bytes);
	}
	return with_big_pages(p, bytes);
}

void *mem_alloc(size_t n, size_t size)
{
	size_t bytes = mem_product(n, size);
	return mem_give(malloc(bytes ? bytes : 1), bytes);
}

void *mem_zalloc(size_t n, size_t size)
{
	size_t bytes = mem_product(n, size);
	return mem_give(calloc(bytes ? bytes : 1, 1), bytes);
}

uint32_t *mem_filled(size_t n, uint32_t value)
{
	uint32_t *v = NEW_ARRAY_RAW(n, uint32_t);
	for (size_t i = 0; i < n; i++)
		v[i] = value;
	return v;
}

void *mem_realloc(void *p, size_t n, size_t size)
{
	size_t bytes = mem_product(n, size);
	if (!p)
		return mem_give(malloc(bytes ? bytes : 1), bytes);
	/* Unnoted first: once the old address is free, another thread may be given it. */
	struct mem_block *noted = mem_unnote(p);
	void *larger = realloc(p, bytes ? bytes : 1);
	mem_note_again(noted, larger ? larger : p);
	if (!larger)
		mem_fail(bytes);
	return with_big_pages(larger, bytes);
}

void mem_free(void *p)
{
	mem_forget(p);
	free(p);
}
