#include "base/json_text.h"

#include "base/utf8.h"

static void json_text_put_char(struct buf *out, uint32_t code, struct str bytes)
{
	if (code == '"' || code == '\\') {
		buf_char(out, '\\');
		buf_char(out, (char)code);
	} else if (code == '\n') {
		buf_cstr(out, "\\n");
	} else if (code == '\t') {
		buf_cstr(out, "\\t");
	} else if (code == UTF8_BAD) {
		buf_cstr(out, "\xef\xbf\xbd");
	} else if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029) {
		buf_printf(out, "\\u%04x", code);
	} else {
		buf_str(out, bytes);
	}
}

/* Stands for itself, and is all of its character. */
static bool json_text_is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void json_put_string(struct buf *out, struct str s)
{
	buf_char(out, '"');
	for (size_t at = 0; at < s.n;) {
		size_t plain = at;
		while (plain < s.n && json_text_is_plain((unsigned char)s.p[plain]))
			plain++;
		buf_put(out, s.p + at, plain - at);
		at = plain;
		if (at == s.n)
			break;
		uint32_t code;
		unsigned n = utf8_next(s, at, &code);
		json_text_put_char(out, code, (struct str){s.p + at, n});
		at += n;
	}
	buf_char(out, '"');
}

static void json_text_put_name(struct buf *out, const char *name)
{
	buf_char(out, '"');
	buf_cstr(out, name);
	buf_cstr(out, "\":");
}

void json_put_text(struct buf *out, const char *name, struct str v)
{
	json_text_put_name(out, name);
	json_put_string(out, v);
}

void json_put_texts(struct buf *out, const struct json_text_member *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_cstr(out, i ? "," : "");
		json_put_text(out, v[i].name, v[i].v);
	}
}

void json_put_number(struct buf *out, const char *name, int64_t v)
{
	json_text_put_name(out, name);
	buf_i64(out, v);
}
