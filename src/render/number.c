#include "render/number.h"

#include <stdio.h>
#include <stdlib.h>

/* A host program may have set a locale with a decimal comma. */
static void point(char *s)
{
	for (; *s; s++)
		if (*s == ',')
			*s = '.';
}

void number_shortest(struct buf *out, double v)
{
	char text[40];
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
