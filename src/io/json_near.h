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
	/* What may follow a number and is no part of a word. */
	const char c = p[n];
	if ((c != ',' && c != '\n' && c != '}' && c != ']') || p + n >= j->end)
		return json_value(j, p, v);
	*v = (struct json_value){JSON_NUMBER, false, {p, n}};
	return p + n;
}

#endif
