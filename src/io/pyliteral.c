#include "io/pyliteral.h"

#include "base/buf.h"

struct pyliteral_parser {
	const char *p, *end;
	struct arena *a;
	int depth;
};

static struct py *pyliteral_value(struct pyliteral_parser *c);

static void skip_blanks(struct pyliteral_parser *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
}

static bool pyliteral_take(struct pyliteral_parser *c, char want)
{
	skip_blanks(c);
	if (c->p >= c->end || *c->p != want)
		return false;
	c->p++;
	return true;
}

static struct py *new_value(struct pyliteral_parser *c, enum py_type type, const char *from)
{
	struct py *v = ARENA_ARRAY(c->a, 1, struct py);
	v->type = type;
	v->raw = (struct str){from, (size_t)(c->p - from)};
	return v;
}

static void pyliteral_put_utf8(struct buf *b, uint32_t u)
{
	if (u < 0x80) {
		buf_char(b, (char)u);
	} else if (u < 0x800) {
		buf_char(b, (char)(0xc0 | u >> 6));
		buf_char(b, (char)(0x80 | (u & 0x3f)));
	} else if (u < 0x10000) {
		buf_char(b, (char)(0xe0 | u >> 12));
		buf_char(b, (char)(0x80 | (u >> 6 & 0x3f)));
		buf_char(b, (char)(0x80 | (u & 0x3f)));
	} else if (u < 0x110000) {
		buf_char(b, (char)(0xf0 | u >> 18));
		buf_char(b, (char)(0x80 | (u >> 12 & 0x3f)));
		buf_char(b, (char)(0x80 | (u >> 6 & 0x3f)));
		buf_char(b, (char)(0x80 | (u & 0x3f)));
	}
}

static bool pyliteral_hex(struct pyliteral_parser *c, int digits, uint32_t *u)
{
	*u = 0;
	for (; digits; digits--, c->p++) {
		int d = c->p >= c->end ? -1 : *c->p >= '0' && *c->p <= '9' ? *c->p - '0' : (*c->p | 32) >= 'a' && (*c->p | 32) <= 'f' ? (*c->p | 32) - 'a' + 10 : -1;
		if (d < 0)
			return false;
		*u = *u << 4 | (uint32_t)d;
	}
	return true;
}

/* What follows a backslash. */
static bool escape(struct pyliteral_parser *c, struct buf *b)
{
	static const char from[] = "ntrabfv0\\'\"/", to[] = "\n\t\r\a\b\f\v\0\\'\"/";
	if (c->p >= c->end)
		return false;
	char e = *c->p++;
	if (e == 'x' || e == 'u' || e == 'U') {
		uint32_t u;
		if (!pyliteral_hex(c, e == 'x' ? 2 : e == 'u' ? 4 : 8, &u))
			return false;
		pyliteral_put_utf8(b, u);
		return true;
	}
	const char *at = e ? strchr(from, e) : NULL;
	if (at) {
		buf_char(b, to[at - from]);
	} else if (e != '\n') { /* unknown escapes stay, as in Python */
		buf_char(b, '\\');
		buf_char(b, e);
	}
	return true;
}

static struct py *pyliteral_string(struct pyliteral_parser *c, const char *from)
{
	char quote = *c->p++;
	const char *start = c->p;
	while (c->p < c->end && *c->p != quote && *c->p != '\\')
		c->p++;
	if (c->p < c->end && *c->p == quote) { /* nothing to decode */
		struct str s = {start, (size_t)(c->p++ - start)};
		struct py *v = new_value(c, PY_STR, from);
		v->s = s;
		return v;
	}
	struct buf b = {0};
	buf_put(&b, start, (size_t)(c->p - start));
	bool ok = true;
	while (ok && c->p < c->end && *c->p != quote) {
		char ch = *c->p++;
		if (ch == '\\')
			ok = escape(c, &b);
		else
			buf_char(&b, ch);
	}
	ok = ok && c->p < c->end;
	struct py *v = NULL;
	if (ok) {
		c->p++;
		v = new_value(c, PY_STR, from);
		v->s = arena_str(c->a, buf_view(&b));
	}
	buf_release(&b);
	return v;
}

/* Items up to `close`; `type` may become PY_TUPLE's own value for "(1)". */
static struct py *container(struct pyliteral_parser *c, enum py_type type, char close)
{
	const char *from = c->p++;
	if (c->depth++ >= PY_DEPTH)
		return NULL;
	struct py *first = NULL, **last = &first;
	unsigned n = 0;
	bool comma = false;
	while (!pyliteral_take(c, close)) {
		if (n && !comma)
			return NULL;
		struct py *key = type == PY_DICT ? pyliteral_value(c) : NULL;
		if (type == PY_DICT && (!key || !pyliteral_take(c, ':')))
			return NULL;
		struct py *item = pyliteral_value(c);
		if (!item)
			return NULL;
		item->key = key;
		*last = item;
		last = &item->next;
		n++;
		comma = pyliteral_take(c, ',');
	}
	c->depth--;
	if (type == PY_TUPLE && n == 1 && !comma) { /* only parentheses */
		first->raw = (struct str){from, (size_t)(c->p - from)};
		return first;
	}
	struct py *v = new_value(c, type, from);
	v->first = first;
	v->n = n;
	return v;
}

static bool pyliteral_is_word(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '+' || ch == '-';
}

/* A number, as Python or C writes it; the text was checked to be made of its characters. */
static bool pyliteral_is_number(struct str s)
{
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
	struct str word = {s.p + i, s.n - i};
	if (str_eq(word, STR("inf")) || str_eq(word, STR("nan")) || str_eq(word, STR("Infinity")) || str_eq(word, STR("NaN")))
		return true;
	bool digit = false, dot = false, exponent = false;
	for (; i < s.n; i++) {
		char ch = s.p[i];
		if (ch >= '0' && ch <= '9') {
			digit = true;
		} else if (ch == '.' && !dot && !exponent) {
			dot = true;
		} else if ((ch | 32) == 'e' && digit && !exponent && i + 1 < s.n) {
			exponent = true;
			i += s.p[i + 1] == '-' || s.p[i + 1] == '+';
			digit = false;
		} else {
			return false;
		}
	}
	return digit;
}

static struct py *pyliteral_word(struct pyliteral_parser *c)
{
	static const struct { const char *text; enum py_type type; int64_t i; } words[] = {
		{"None", PY_NONE, 0}, {"True", PY_BOOL, 1}, {"False", PY_BOOL, 0},
		{"null", PY_NONE, 0}, {"true", PY_BOOL, 1}, {"false", PY_BOOL, 0},
	};
	const char *from = c->p;
	while (c->p < c->end && pyliteral_is_word(*c->p))
		c->p++;
	struct str s = {from, (size_t)(c->p - from)};
	for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
		if (!str_eqc(s, words[k].text))
			continue;
		struct py *v = new_value(c, words[k].type, from);
		v->i = words[k].i;
		return v;
	}
	int64_t i;
	if (str_to_i64(s, &i)) {
		struct py *v = new_value(c, PY_INT, from);
		v->i = i;
		return v;
	}
	if (pyliteral_is_number(s))
		return new_value(c, PY_FLOAT, from);
	c->p = from;
	return NULL;
}

static struct py *pyliteral_value(struct pyliteral_parser *c)
{
	skip_blanks(c);
	if (c->p >= c->end)
		return NULL;
	const char *from = c->p;
	switch (*c->p) {
	case '{': return container(c, PY_DICT, '}');
	case '[': return container(c, PY_LIST, ']');
	case '(': return container(c, PY_TUPLE, ')');
	case '\'': case '"': return pyliteral_string(c, from);
	case 'u': case 'b':
		if (c->p + 1 < c->end && (c->p[1] == '\'' || c->p[1] == '"')) {
			c->p++;
			return pyliteral_string(c, from);
		}
		break;
	}
	return pyliteral_word(c);
}

const struct py *py_parse(struct str text, struct arena *a, size_t *at)
{
	struct pyliteral_parser c = {text.p, text.p + text.n, a, 0};
	struct py *v = pyliteral_value(&c);
	skip_blanks(&c);
	*at = (size_t)(c.p - text.p);
	return v && c.p == c.end ? v : NULL;
}

const struct py *py_get(const struct py *d, const char *key)
{
	for (const struct py *v = d && d->type == PY_DICT ? d->first : NULL; v; v = v->next)
		if (v->key->type == PY_STR && str_eqc(v->key->s, key))
			return v;
	return NULL;
}
