#include "io/json_valid.h"

#include "base/json_text.h"
#include "base/utf8.h"
#include "io/json.h"

struct rewriter {
	struct json j;
	struct buf *out, *scratch;
	bool sound; /* so far it was JSON */
};

/* In every byte: its highest bit set where x has a byte below n (n <= 128), or equal to c; other bits are of no meaning, and so are those of
 * bytes above the first that is set. */
#define BYTES(c) (0x0101010101010101u * (uint64_t)(c))
#define BELOW(x, n) (((x) - BYTES(n)) & ~(x))
#define EQUAL(x, c) BELOW((x) ^ BYTES(c), 1)

bool json_is_plain(struct str s)
{
	size_t i = 0;
	for (; i + 8 <= s.n; i += 8) {
		uint64_t x;
		memcpy(&x, s.p + i, 8);
		if ((BELOW(x, ' ') | EQUAL(x, '"') | EQUAL(x, '\\') | EQUAL(x, 0x7f) | x) & BYTES(0x80))
			return false;
	}
	for (; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || (unsigned char)s.p[i] >= 0x7f || s.p[i] == '\\' || s.p[i] == '"')
			return false;
	return true;
}

static void json_valid_put_quoted(struct buf *out, struct str s)
{
	char *p = buf_room(out, s.n + 2);
	*p = '"';
	memcpy(p + 1, s.p, s.n);
	p[s.n + 1] = '"';
	out->n += s.n + 2;
}

/* A string that stands in JSON as it is. */
static bool is_sound(struct str raw, struct buf *scratch)
{
	unsigned repairs = 0;
	uint32_t code;
	for (size_t at = 0; at < raw.n;) {
		at += utf8_next(raw, at, &code);
		if (code < ' ' || code == UTF8_BAD)
			return false;
	}
	buf_clear(scratch);
	json_unescape(raw, scratch, &repairs);
	return repairs == 0;
}

/* Returns whether it was sound. */
static bool json_valid_put_raw(struct buf *out, struct str raw, struct buf *scratch)
{
	if (json_is_plain(raw) || is_sound(raw, scratch)) {
		json_valid_put_quoted(out, raw);
		return true;
	}
	unsigned repairs = 0;
	buf_clear(scratch);
	json_unescape(raw, scratch, &repairs);
	json_put_string(out, buf_view(scratch));
	return false;
}

void json_put_raw(struct buf *out, struct str raw, struct buf *scratch)
{
	json_valid_put_raw(out, raw, scratch);
}

static const char *json_valid_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* A number as JSON has them: -12.5e3. */
static bool json_valid_is_number(struct str s)
{
	const char *p = s.p, *end = s.p + s.n;
	p += p < end && *p == '-';
	const char *first = p;
	p = json_valid_digits(p, end);
	if (p == first || (*first == '0' && p > first + 1))
		return false;
	if (p < end && *p == '.') {
		first = ++p;
		p = json_valid_digits(p, end);
		if (p == first)
			return false;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		first = p;
		p = json_valid_digits(p, end);
		if (p == first)
			return false;
	}
	return p == end;
}

static void json_valid_put_word(struct rewriter *r, const struct json_value *v)
{
	bool sound = v->type == JSON_NUMBER ? json_valid_is_number(v->raw) : v->type != JSON_BARE;
	r->sound &= sound;
	if (sound)
		buf_str(r->out, v->raw);
	else
		json_valid_put_raw(r->out, v->raw, r->scratch);
}

static const char *rewrite(struct rewriter *r, const char *p);

/* The inside of an array or object; p is behind its bracket. Behind the other, or NULL. */
static const char *rewrite_container(struct rewriter *r, const char *p, bool object)
{
	struct json_value key = {.raw = {"", 0}};
	bool first = true, done = false;
	for (bool next = false; p; next = true) {
		p = object ? json_member(&r->j, p, &first, &key) : json_element(&r->j, p, &first, &done);
		if (!p || done || !key.raw.p)
			break;
		if (next)
			buf_cstr(r->out, ", ");
		if (object) {
			r->sound &= json_valid_put_raw(r->out, key.raw, r->scratch);
			buf_cstr(r->out, ": ");
		}
		p = rewrite(r, p);
	}
	return p;
}

/* Writes the value at p anew, with a blank behind each ',' and ':'. Behind it, or NULL when it cannot be told what it is. Its depth is that of
 * values that json_value slices: no more than JSON_DEPTH. */
static const char *rewrite(struct rewriter *r, const char *p)
{
	struct json_value v;
	char open = *p;
	if (open == '[' || open == '{') {
		buf_char(r->out, open);
		p = rewrite_container(r, p + 1, open == '{');
		buf_char(r->out, open == '{' ? '}' : ']');
		return p;
	}
	p = json_value(&r->j, p, &v);
	if (p && v.type == JSON_STRING)
		r->sound &= json_valid_put_raw(r->out, v.raw, r->scratch);
	else if (p)
		json_valid_put_word(r, &v);
	return p;
}

static void put_line(struct buf *out, struct str line, struct buf *scratch)
{
	struct rewriter r = {.j = {.end = line.p + line.n}, .out = out, .scratch = scratch, .sound = true};
	size_t before = out->n;
	const char *end = rewrite(&r, line.p);
	bool whole = end == line.p + line.n;
	if (whole && !(r.sound && !r.j.repairs))
		return;
	out->n = before;
	if (whole)
		buf_str(out, line);
	else
		json_put_string(out, line);
}

void json_put_valid(struct buf *out, struct str raw, struct buf *scratch)
{
	bool container = raw.n && (*raw.p == '[' || *raw.p == '{');
	if (!container) {
		struct rewriter r = {.j = {.end = raw.p + raw.n + 1}, .out = out, .scratch = scratch};
		struct json_value v;
		if (raw.n && json_value(&r.j, raw.p, &v) == raw.p + raw.n && v.type != JSON_STRING)
			json_valid_put_word(&r, &v);
		else
			json_put_string(out, raw);
		return;
	}
	if (!memchr(raw.p, '\n', raw.n)) {
		put_line(out, raw, scratch);
		return;
	}
	struct buf line = {0};
	json_one_line(raw, &line);
	size_t n = line.n;
	buf_fill(&line, 0, JSON_PADDING);
	put_line(out, (struct str){line.p, n}, scratch);
	buf_release(&line);
}

void json_put_valid_text(struct buf *out, struct str s)
{
	struct buf padded = {0}, scratch = {0};
	buf_str(&padded, s);
	buf_fill(&padded, 0, JSON_PADDING);
	json_put_valid(out, (struct str){padded.p, s.n}, &scratch);
	buf_release(&padded);
	buf_release(&scratch);
}
