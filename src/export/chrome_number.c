#include "export/chrome.h"

static const char pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869"
	"707172737475767778798081828384858687888990919293949596979899";

/* The digits of v, ending at `end`; at least `least` of them. Where they begin. */
static char *digits_before(char *end, uint64_t v, unsigned least)
{
	char *p = end;
	for (; v >= 100; v /= 100)
		memcpy(p -= 2, pairs + 2 * (v % 100), 2);
	if (v >= 10)
		memcpy(p -= 2, pairs + 2 * v, 2);
	else
		*--p = (char)('0' + v);
	while (end - p < (ptrdiff_t)least)
		*--p = '0';
	return p;
}

static char *put_digits(char *p, uint64_t v, unsigned least)
{
	char text[32], *end = text + sizeof text, *from = digits_before(end, v, least);
	memcpy(p, from, (size_t)(end - from));
	return p + (end - from);
}

char *chrome_put_i64(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return put_digits(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 1);
}

char *chrome_put_decimal(char *p, int64_t v, unsigned decimals)
{
	static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
	uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	if (v < 0)
		*p++ = '-';
	if (!decimals)
		return put_digits(p, size, 1);
	p = put_digits(p, size / power[decimals], 1);
	*p++ = '.';
	return put_digits(p, size % power[decimals], decimals);
}
