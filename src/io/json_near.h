/* The JSON reader's short way to a value, inline: a string or number that ends soon and has nothing special is read in two
 * steps of 16 bytes; json_value reads any other. The result is that of json_value in all cases. Bytes behind the end of the
 * window are read: JSON_PADDING covers them. */
#ifndef OPSCOPE_IO_JSON_NEAR_H
#define OPSCOPE_IO_JSON_NEAR_H

#include "base/lanes.h"
#include "io/json.h"

/* The position behind the string whose first content byte is at `p`, and its length in *n; NULL unless its closing quote is one of the
 * next 2 * LANES bytes, before any back-slash and before `end`. */
static inline const char *json_near_string(const char *p, const char *end, unsigned *n)
{
	const lanes quotes = lanes_of('"'), slashes = lanes_of('\\');
	lanes x = lanes_at(p);
	uint64_t quote = lanes_equal(x, quotes), slash = lanes_equal(x, slashes);
	*n = 0;
	if (!(quote | slash)) {
		x = lanes_at(p + LANES);
		quote = lanes_equal(x, quotes);
		slash = lanes_equal(x, slashes);
		*n = LANES;
	}
	if (!quote || (slash & (quote ^ (quote - 1))))
		return NULL;
	*n += lanes_first(quote);
	return p + *n < end ? p + *n + 1 : NULL;
}

/* Whether a number ends at `p`: what stands there follows values and is no part of a word. */
static inline bool json_near_ends(const struct json *j, const char *p)
{
	return (*p == ',' || *p == '\n' || *p == '}' || *p == ']') && p < j->end;
}

/* As json_value. */
static inline const char *json_near_value(struct json *j, const char *p, struct json_value *v)
{
	enum { DIGITS_FROM = '-', DIGITS_SPAN = '9' - '-' }; /* - . / and digits */
	if (*p == '"') {
		unsigned n;
		const char *behind = json_near_string(p + 1, j->end, &n);
		if (!behind)
			return json_value(j, p, v);
		*v = (struct json_value){JSON_STRING, false, {p + 1, n}};
		return behind;
	}
	unsigned sign = *p == '-';
	if (p[sign] < '0' || p[sign] > '9')
		return json_value(j, p, v);
	const uint64_t all = lanes_up_to(LANES);
	uint64_t digits = lanes_within(lanes_at(p), DIGITS_FROM, DIGITS_SPAN);
	unsigned n = 0;
	if (digits == all) {
		digits = lanes_within(lanes_at(p + LANES), DIGITS_FROM, DIGITS_SPAN);
		n = LANES;
	}
	n += digits == all ? 0 : lanes_first(~digits);
	if (!json_near_ends(j, p + n))
		return json_value(j, p, v);
	*v = (struct json_value){JSON_NUMBER, false, {p, n}};
	return p + n;
}

/* The value of 8 digits, the first of them in the lowest byte; a byte of 0 counts as the digit 0. */
static inline uint64_t json_near_eight(uint64_t x)
{
	x &= 0x0f0f0f0f0f0f0f0fu;
	x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffu;
	x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffu;
	return (x * 10000 + (x >> 32)) & 0xffffffffu;
}

/* How many digits stand at `p`, LANES when there are more, and their value. Branches on how many there are would seldom be foreseen, but for whether
 * there are more than 8: times of day have more, lengths and ids do not. */
static inline unsigned json_near_digits(const char *p, uint64_t *v)
{
	const unsigned n = lanes_run(lanes_within(lanes_at(p), '0', 9));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	/* The last digit comes to the highest byte. */
	if (n <= 8) {
		uint64_t x;
		memcpy(&x, p, sizeof x);
		*v = json_near_eight(x << (8 * (8 - n) & 63));
	} else {
		unsigned __int128 x;
		memcpy(&x, p, sizeof x);
		x <<= 8 * (LANES - n);
		*v = json_near_eight((uint64_t)x) * 100000000 + json_near_eight((uint64_t)(x >> 64));
	}
#else
	*v = 0;
	for (unsigned i = 0; i < n; i++)
		*v = *v * 10 + (uint64_t)(p[i] - '0');
#endif
	return n;
}

/* The whole number at `p`: as json_value followed by json_to_i64. NULL, *v as before, which says nothing of the text, unless it has 1 to LANES digits, behind '-' or no sign. */
static inline const char *json_near_whole(const struct json *j, const char *p, int64_t *v)
{
	uint64_t x;
	const bool minus = *p == '-';
	p += minus;
	const unsigned n = json_near_digits(p, &x);
	if (!n || !json_near_ends(j, p + n))
		return NULL;
	*v = minus ? -(int64_t)x : (int64_t)x;
	return p + n;
}

/* Three whole numbers of 32 bits at `p`, "[1, 2, 3]", with a blank behind each comma or none. NULL, which says nothing of the text, when another one
 * stands there; *v may then be changed. */
static inline const char *json_near_triple(const struct json *j, const char *p, int32_t v[3])
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t x;
		if (*p != (i ? ',' : '['))
			return NULL;
		p += 1 + (i && p[1] == ' ');
		const unsigned n = json_near_digits(p, &x);
		if (!n || x > INT32_MAX)
			return NULL;
		v[i] = (int32_t)x;
		p += n;
	}
	return *p == ']' && p < j->end ? p + 1 : NULL;
}

/* The number at `p` times 1000: as json_value followed by json_to_scaled. NULL, *v as before, which says nothing of the text, unless it has 1 to LANES
 * digits that are less than 9 * 10^15, no sign, and at most three decimals. */
static inline const char *json_near_thousandths(const struct json *j, const char *p, int64_t *v)
{
	uint64_t x;
	const unsigned n = json_near_digits(p, &x);
	uint64_t fraction = 0;
	p += n;
	if (*p == '.') {
		/* Of these four bytes the digits in front. */
		uint32_t y = (uint32_t)(uint8_t)p[1] | (uint32_t)(uint8_t)p[2] << 8 | (uint32_t)(uint8_t)p[3] << 16 | (uint32_t)(uint8_t)p[4] << 24;
		y ^= 0x30303030u;
		const uint32_t others = (y | (y + 0x06060606u)) & 0xf0f0f0f0u;
		const unsigned digits = others ? (unsigned)__builtin_ctz(others) / 8 : 4;
		if (digits == 0 || digits > 3)
			return NULL;
		y &= (1u << 8 * digits) - 1;
		fraction = (y & 0xff) * 100 + (y >> 8 & 0xff) * 10 + (y >> 16);
		p += 1 + digits;
	}
	if (!n || x >= 9000000000000000u || !json_near_ends(j, p))
		return NULL;
	*v = (int64_t)(x * 1000 + fraction);
	return p;
}

#endif
