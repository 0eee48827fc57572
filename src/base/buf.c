#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void buf_grow(struct buf *b, size_t more)
{
	if (more > SIZE_MAX / 2 - b->n)
		more = SIZE_MAX / 2; /* the allocator reports it */
	MEM_GROW(b->p, b->cap, b->n + more);
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (!n)
		return;
	buf_grow(b, n);
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void buf_fill(struct buf *b, char c, size_t n)
{
	if (!n)
		return;
	buf_grow(b, n);
	memset(b->p + b->n, c, n);
	b->n += n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	buf_grow(b, 64);
	int n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n >= b->cap - b->n) {
		buf_grow(b, (size_t)n + 1);
		vsnprintf(b->p + b->n, b->cap - b->n, fmt, again);
	}
	va_end(again);
	if (n > 0)
		b->n += (size_t)n;
}

void buf_i64(struct buf *b, int64_t v)
{
	char digits[24];
	char *end = digits + sizeof digits, *p = end;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--p = '-';
	buf_put(b, p, (size_t)(end - p));
}

void buf_clear(struct buf *b)
{
	b->n = 0;
}

void buf_release(struct buf *b)
{
	mem_free(b->p);
	*b = (struct buf){0};
}
