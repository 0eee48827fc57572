#include "predecessors/pyprof/op/repr.h"

#include "base/search.h"
#include "base/utf8.h"

/* As Python's repr(): what is not printable is escaped. */
static void pyprof_repr_put_char(struct buf *out, struct str s, size_t at, size_t n, uint32_t c, char quote)
{
	if (c == '\\' || c == (unsigned char)quote)
		buf_char(out, '\\'), buf_char(out, (char)c);
	else if (c == '\n')
		buf_cstr(out, "\\n");
	else if (c == '\r')
		buf_cstr(out, "\\r");
	else if (c == '\t')
		buf_cstr(out, "\\t");
	else if (!utf8_is_unsafe(c))
		buf_put(out, s.p + at, n);
	else
		buf_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

/* How many bytes from `at` on stand as they are in repr()'s text. */
static size_t plain_run(struct str s, size_t at, char quote)
{
	size_t end = at;
	while (end < s.n && s.p[end] >= ' ' && s.p[end] <= '~' && s.p[end] != '\\' && s.p[end] != quote)
		end++;
	return end - at;
}

void pyprof_put_repr(struct buf *out, struct str s)
{
	bool single = s.n && memchr(s.p, '\'', s.n), both = single && memchr(s.p, '"', s.n);
	char quote = single && !both ? '"' : '\'';
	struct buf valid = {0};
	if (ANY_WHERE(i, 0, s.n, (unsigned char)s.p[i] >= 0x80)) {
		utf8_put_valid(&valid, s);
		s = buf_view(&valid);
	}
	buf_char(out, quote);
	for (size_t at = 0; at < s.n;) {
		const size_t run = plain_run(s, at, quote);
		uint32_t code;
		buf_put(out, s.p + at, run);
		at += run;
		if (at == s.n)
			break;
		const unsigned n = utf8_next(s, at, &code);
		pyprof_repr_put_char(out, s, at, n, code, quote);
		at += n;
	}
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
