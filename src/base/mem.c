#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

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

void *mem_alloc(size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(malloc(bytes ? bytes : 1), bytes);
}

void *mem_zalloc(size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(calloc(bytes ? bytes : 1, 1), bytes);
}

void *mem_realloc(void *p, size_t n, size_t size)
{
	size_t bytes = product(n, size);
	return give(realloc(p, bytes ? bytes : 1), bytes);
}

void mem_free(void *p)
{
	free(p);
}
