#include "render/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A host program may have set a locale with a decimal comma. */
static void point(char *s)
{
	for (; *s; s++)
		if (*s == ',')
			*s = '.';
}

__extension__ typedef unsigned __int128 number_wide;

enum { NUMBER_LEAST = 15, NUMBER_MOST = 17, NUMBER_TENS = 22 }; /* digits that all doubles of so many have, and that tell all doubles apart */

/* mantissa * 2^-down = v, with all 53 bits of the mantissa; `tens` = how many times ten v is multiplied by to have `digits` digits before the point. */
struct number_parts {
	uint64_t mantissa;
	int down, tens;
};

/* v in so many digits, rounded to even as printf does, if they read back as v: |digits * 2^down - mantissa * 10^tens| is less than half of what
 * the last bit of the mantissa stands for. 0 when they do not, or when v has another number of digits. */
static uint64_t number_digits(const struct number_parts *x, int digits, const uint64_t *power)
{
	number_wide whole = (number_wide)x->mantissa * power[x->tens > 19 ? 19 : x->tens];
	number_wide bit = power[x->tens > 19 ? 19 : x->tens];
	for (int i = 19; i < x->tens; i++) {
		whole *= 10;
		bit *= 10;
	}
	number_wide unit = (number_wide)1 << x->down, rest = whole & (unit - 1);
	uint64_t n = (uint64_t)(whole >> x->down);
	bool up = 2 * rest > unit || (2 * rest == unit && (n & 1));
	n += up;
	number_wide off = up ? unit - rest : rest;
	if (n < power[digits - 1] || n >= power[digits])
		return 0;
	return 2 * off < bit || (2 * off == bit && !(x->mantissa & 1)) ? n : 0;
}

/* n, of so many digits, the first of which stands for 10^exponent; without zeros at the end. */
static void number_put_digits(struct buf *out, uint64_t n, int exponent)
{
	char text[I64_DIGITS], *end = i64_write(text, (int64_t)n);
	while (end[-1] == '0')
		end--;
	int digits = (int)(end - text), whole = exponent + 1;
	if (whole <= 0) {
		buf_cstr(out, "0.");
		buf_fill(out, '0', (size_t)-whole);
		buf_put(out, text, (size_t)digits);
		return;
	}
	buf_put(out, text, (size_t)(digits < whole ? digits : whole));
	if (digits < whole)
		buf_fill(out, '0', (size_t)(whole - digits));
	else if (digits > whole) {
		buf_char(out, '.');
		buf_put(out, text + whole, (size_t)(digits - whole));
	}
}

/* Those between 0.0001 and 10^15 are worked out in integers, several times as fast as printf. False: not this one. */
static bool number_shortest_plain(struct buf *out, double v)
{
	static const uint64_t power[] = {
		1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000,
		100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000, 10000000000000000000u,
	};
	int exponent = 0;
	double size = v < 0 ? -v : v;
	if (!(size >= 1e-4 && size < 1e15))
		return false;
	if (size == (double)(int64_t)size) {
		buf_i64(out, (int64_t)v);
		return true;
	}
	if (size >= 1)
		while (exponent < 14 && size >= (double)power[exponent + 1])
			exponent++;
	else
		exponent = size >= 1e-1 ? -1 : size >= 1e-2 ? -2 : size >= 1e-3 ? -3 : -4;
	int two;
	struct number_parts x = {.mantissa = (uint64_t)ldexp(frexp(size, &two), DBL_MANT_DIG)};
	x.down = DBL_MANT_DIG - two;
	if (x.mantissa == UINT64_C(1) << (DBL_MANT_DIG - 1)) /* the double below is half as far off */
		return false;
	for (int digits = NUMBER_LEAST; digits <= NUMBER_MOST; digits++) {
		x.tens = digits - 1 - exponent;
		uint64_t n = x.tens <= NUMBER_TENS ? number_digits(&x, digits, power) : 0;
		if (n && v < 0)
			buf_char(out, '-');
		if (n) {
			number_put_digits(out, n, exponent);
			return true;
		}
	}
	return false;
}

void number_shortest(struct buf *out, double v)
{
	char text[40];
	if (number_shortest_plain(out, v))
		return;
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof text, "%.*g", precision, v);
		if (strtod(text, NULL) == v)
			break;
	}
	point(text);
	buf_cstr(out, text);
}

void number_put_cell(struct buf *out, const struct column_data *d, size_t row)
{
	if (d->col.type == CELL_F64)
		number_shortest(out, d->cell[row].f);
	else if (d->col.type == CELL_I64)
		buf_i64(out, d->cell[row].i);
	else
		buf_cstr(out, d->cell[row].i ? "true" : "false");
}

/* `s` is a number in decimal: its integer digits in groups, the rest as it is. */
static void put_grouped(struct buf *out, struct str s)
{
	size_t from = s.n && s.p[0] == '-', to = from;
	while (to < s.n && s.p[to] >= '0' && s.p[to] <= '9')
		to++;
	buf_put(out, s.p, from);
	for (size_t i = from; i < to; i++) {
		if (i > from && (to - i) % 3 == 0)
			buf_char(out, ',');
		buf_char(out, s.p[i]);
	}
	buf_put(out, s.p + to, s.n - to);
}

void number_fixed(struct buf *out, double v, int digits, bool grouped)
{
	char text[360]; /* DBL_MAX has 309 digits before the point */
	digits = digits < 0 ? 0 : digits > 17 ? 17 : digits;
	int n = snprintf(text, sizeof text, "%.*f", digits, v);
	point(text);
	struct str s = {text, (size_t)n};
	if (grouped)
		put_grouped(out, s);
	else
		buf_str(out, s);
}

void number_grouped(struct buf *out, int64_t v)
{
	struct buf plain = {0};
	buf_i64(&plain, v);
	put_grouped(out, buf_view(&plain));
	buf_release(&plain);
}
