#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *give(void *p, size_t bytes)
{
	if (!p && bytes) {
		fprintf(stderr, "opscope: out of memory (%zu bytes more were needed)\n", bytes);
		exit(1);
	}
	return p;
}

static size_t product(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		give(NULL, (size_t)-1);
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

void *mem_alloc(size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(with_big_pages(malloc(bytes ? bytes : 1), bytes), bytes);
}

void *mem_zalloc(size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(with_big_pages(calloc(bytes ? bytes : 1, 1), bytes), bytes);
}

void *mem_realloc(void *p, size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(with_big_pages(realloc(p, bytes ? bytes : 1), bytes), bytes);
}

void mem_free(void *p)
{
	free(p);
}
