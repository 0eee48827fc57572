#include "base/search.h"
#include "base/utf8.h"

static bool follows(struct str s, size_t at)
{
	return at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80;
}

unsigned utf8_next(struct str s, size_t at, uint32_t *code)
{
	unsigned char b = (unsigned char)s.p[at];
	if (b < 0x80) {
		*code = b;
		return 1;
	}
	unsigned n = b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0;
	uint32_t c = n == 2 ? b & 0x1f : n == 3 ? b & 0x0f : b & 0x07;
	for (unsigned i = 1; i < n; i++) {
		if (!follows(s, at + i)) {
			n = 0;
			break;
		}
		c = c << 6 | ((unsigned char)s.p[at + i] & 0x3f);
	}
	bool overlong = (n == 3 && c < 0x800) || (n == 4 && c < 0x10000);
	if (!n || overlong || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		*code = UTF8_BAD;
		return 1;
	}
	*code = c;
	return n;
}

/* Where the ASCII from `at` on ends, or less: eight bytes at a time. */
static size_t skip_ascii(struct str s, size_t at)
{
	uint64_t eight;
	for (; s.n - at >= sizeof eight; at += sizeof eight) {
		memcpy(&eight, s.p + at, sizeof eight);
		if (eight & 0x8080808080808080)
			break;
	}
	return at;
}

bool utf8_valid(struct str s)
{
	uint32_t code;
	for (size_t at = skip_ascii(s, 0); at < s.n; at = skip_ascii(s, at)) {
		at += utf8_next(s, at, &code);
		if (code == UTF8_BAD)
			return false;
	}
	return true;
}

struct utf8_range {
	uint32_t first, last;
};

static bool within(const struct utf8_range *list, size_t n, uint32_t c)
{
	return ANY_WHERE(i, 0, n, c >= list[i].first && c <= list[i].last);
}
#define WITHIN(list, c) within(list, sizeof(list) / sizeof(list)[0], c)

/* Blocks of combining marks and of East Asian wide characters; coarse, but a terminal that differs only misaligns. */
static const struct utf8_range combining[] = {
	{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a}, {0x64b, 0x65f},
	{0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
static const struct utf8_range wide[] = {
	{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};
static const struct utf8_range unsafe[] = {
	{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},
	{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

unsigned utf8_width(uint32_t code)
{
	return code < 0x300 ? 1 : WITHIN(combining, code) ? 0 : WITHIN(wide, code) ? 2 : 1;
}

bool utf8_is_unsafe(uint32_t code)
{
	if (code >= 0x20 && code < 0x7f)
		return false;
	return code == UTF8_BAD || WITHIN(unsafe, code);
}

static void put_escape(struct buf *out, uint32_t code, unsigned char byte)
{
	if (code == '\n')
		buf_cstr(out, "\\n");
	else if (code == '\t')
		buf_cstr(out, "\\t");
	else if (code == '\r')
		buf_cstr(out, "\\r");
	else if (code == UTF8_BAD || code < 0x80)
		buf_printf(out, "\\x%02x", byte);
	else if (code < 0x10000)
		buf_printf(out, "\\u%04x", code);
	else
		buf_printf(out, "\\U%08x", code);
}

/* Appends s with what is not UTF-8 replaced, or with all that is unsafe escaped. */
static inline void put_mended(struct buf *out, struct str s, bool safe)
{
	size_t good = 0;
	for (size_t at = 0; at < s.n;) {
		uint32_t code;
		unsigned n = utf8_next(s, at, &code);
		if (safe ? utf8_is_unsafe(code) : code == UTF8_BAD) {
			buf_put(out, s.p + good, at - good);
			if (safe)
				put_escape(out, code, (unsigned char)s.p[at]);
			else
				buf_cstr(out, "\xef\xbf\xbd");
			good = at + n;
		}
		at += n;
	}
	if (s.n)
		buf_put(out, s.p + good, s.n - good);
}

void utf8_put_valid(struct buf *out, struct str s)
{
	put_mended(out, s, false);
}

void utf8_put_safe(struct buf *out, struct str s)
{
	put_mended(out, s, true);
}
