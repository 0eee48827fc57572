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

static unsigned digits_of(uint64_t u)
{
	static const uint64_t power[] = {
		0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000,
		100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000, 10000000000000000000u,
	};
	unsigned n = (64u - (unsigned)__builtin_clzll(u | 1)) * 1233 >> 12; /* by the bits, at most one too few */
	return n + (u >= power[n]);
}

char *i64_write(char *at, int64_t v)
{
	static const char pairs[] =
	"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	if (v < 0)
		*at++ = '-';
	char *end = at + digits_of(u), *p = end;
	for (; u >= 100; u /= 100)
		memcpy(p -= 2, pairs + 2 * (u % 100), 2);
	if (u >= 10)
		memcpy(p - 2, pairs + 2 * u, 2);
	else
		p[-1] = (char)('0' + u);
	return end;
}

void buf_i64(struct buf *b, int64_t v)
{
	b->n = (size_t)(i64_write(buf_room(b, I64_DIGITS), v) - b->p);
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
