#include "op/pyprof/repr.h"

#include "base/utf8.h"

static void put_char(struct buf *out, unsigned char c, char quote)
{
	if (c == '\\' || c == (unsigned char)quote)
		buf_char(out, '\\'), buf_char(out, (char)c);
	else if (c == '\n')
		buf_cstr(out, "\\n");
	else if (c == '\r')
		buf_cstr(out, "\\r");
	else if (c == '\t')
		buf_cstr(out, "\\t");
	else if (c < 0x20 || c == 0x7f)
		buf_printf(out, "\\x%02x", c);
	else
		buf_char(out, (char)c);
}

void pyprof_put_repr(struct buf *out, struct str s)
{
	bool single = s.n && memchr(s.p, '\'', s.n), both = single && memchr(s.p, '"', s.n);
	char quote = single && !both ? '"' : '\'';
	struct buf valid = {0};
	utf8_put_valid(&valid, s);
	buf_char(out, quote);
	for (size_t i = 0; i < valid.n; i++)
		put_char(out, (unsigned char)valid.p[i], quote);
	buf_char(out, quote);
	buf_release(&valid);
}

void pyprof_put_repr_list(struct buf *out, const struct str *v, unsigned n)
{
	buf_char(out, '[');
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_cstr(out, ", ");
		pyprof_put_repr(out, v[i]);
	}
	buf_char(out, ']');
}

void pyprof_put_repr_ints(struct buf *out, const int64_t *v, unsigned n, char open, char close)
{
	buf_char(out, open);
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_cstr(out, ", ");
		buf_i64(out, v[i]);
	}
	buf_char(out, close);
}
