#include "profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };

int out_init(struct out *o, int fd)
{
	*o = (struct out){.p = malloc(BLOCK), .cap = BLOCK, .fd = fd};
	return o->p ? 0 : -1;
}

static void flush(struct out *o)
{
	for (size_t at = 0; at < o->n && !o->error;) {
		ssize_t n = write(o->fd, o->p + at, o->n - at);
		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			o->error = errno;
	}
	o->flushed += (int64_t)o->n;
	o->n = 0;
}

int out_finish(struct out *o)
{
	flush(o);
	free(o->p);
	return o->error;
}

void out_room(struct out *o, size_t n)
{
	if (n > o->cap - o->n)
		flush(o);
}

void out_long(struct out *o, const char *p, size_t n)
{
	while (n > o->cap - o->n) {
		size_t part = o->cap - o->n;
		memcpy(o->p + o->n, p, part);
		o->n += part;
		p += part;
		n -= part;
		flush(o);
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

const char digit_pairs[201] =
	"00010203040506070809101112131415161718192021222324"
	"25262728293031323334353637383940414243444546474849"
	"50515253545556575859606162636465666768697071727374"
	"75767778798081828384858687888990919293949596979899";

void out_large(struct out *o, int64_t v)
{
	char digits[DIGITS_MOST], *end = digits + sizeof digits, *first = digits_before(end, v);
	out_put(o, first, (size_t)(end - first));
}

/* 0 = may stand in a JSON string as it is. */
static const uint8_t special[256] = {[0 ... 31] = 1, ['"'] = 1, ['\\'] = 1};

/* Whether one of the 8 bytes at p may not: a byte below 0x20, or one that is 0 once it is combined with the byte looked for. */
static bool any_special(const char *p)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t v, quote, slash;
	memcpy(&v, p, sizeof v);
	quote = v ^ ones * '"';
	slash = v ^ ones * '\\';
	return (((v - ones * ' ') & ~v) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & ones << 7;
}

/* How many bytes from p on stand in a JSON string as they are. */
static size_t plain_bytes(const char *p, size_t n)
{
	size_t i = 0;
	while (n - i >= sizeof(uint64_t) && !any_special(p + i))
		i += sizeof(uint64_t);
	while (i < n && !special[(unsigned char)p[i]])
		i++;
	return i;
}

void out_inside(struct out *o, const char *p, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	for (size_t i = 0, from; i < n; i++) {
		from = i;
		i += plain_bytes(p + i, n - i);
		out_put(o, p + from, i - from);
		if (i == n)
			return;
		unsigned char c = (unsigned char)p[i];
		char escaped[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
		char simple[] = {'\\', (char)c};
		out_put(o, c < ' ' ? escaped : simple, c < ' ' ? sizeof escaped : sizeof simple);
	}
}

void out_string(struct out *o, const char *p, size_t n)
{
	out_char(o, '"');
	out_inside(o, p, n);
	out_char(o, '"');
}
