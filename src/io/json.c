#include "io/json.h"

#include "base/lanes.h"
#include "io/json_scan.h"

#include <stdlib.h>

const char *json_fail(struct json *j, const char *p, const char *expected)
{
	j->status = p >= j->end ? JSON_MORE : JSON_BAD;
	j->bad = p < j->end ? p : j->end;
	j->expected = expected;
	return NULL;
}

/* Most strings of a trace are keys and short words: their end is in the first 16 bytes. */
static inline const char *short_string_end(const char *p, const char *end)
{
	const lanes x = lanes_at(p);
	const uint64_t quote = lanes_equal(x, lanes_of('"')), slash = lanes_equal(x, lanes_of('\\'));
	if (!quote || (slash & (quote ^ (quote - 1))))
		return NULL;
	p += lanes_first(quote);
	return p < end ? p + 1 : NULL;
}

/* Behind the closing quote of the string whose first content byte is at p. */
static inline const char *string_end(struct json *j, const char *p, bool *escaped)
{
	*escaped = false;
	const char *near = short_string_end(p, j->end);
	if (near)
		return near;
	for (;;) {
		p = json_scan_string(p, j->end);
		if (p >= j->end)
			return json_fail(j, j->end, "a closing quote");
		if (*p == '"')
			return p + 1;
		*escaped = true;
		p += 2; /* the escaped character may be a quote */
	}
}

static inline const char *json_string_(struct json *j, const char *p, struct json_value *v)
{
	if (*p != '"')
		return json_fail(j, p, "a string");
	const char *begin = p + 1;
	p = string_end(j, begin, &v->escaped);
	if (!p)
		return NULL;
	v->type = JSON_STRING;
	v->raw = (struct str){begin, (size_t)(p - 1 - begin)};
	return p;
}

const char *json_string(struct json *j, const char *p, struct json_value *v)
{
	return json_string_(j, p, v);
}

const char json_too_deep[] = "less than 512 levels of nesting";

const char *json_skip_deep(struct json *j, const char *p)
{
	uint64_t depth = 0;
	bool escaped;
	do {
		p = json_scan_structure(p, j->end);
		if (p >= j->end)
			return json_fail(j, j->end, "a closing bracket");
		const char c = *p++;
		if (c == '"') {
			if (!(p = string_end(j, p, &escaped)))
				return NULL;
		} else {
			depth += c == '{' || c == '[' ? 1 : -(uint64_t)1;
		}
	} while (depth);
	return p;
}

/* Behind the container that opens at p. Brackets are matched by kind, so that damage is noticed near its place. */
static const char *container_end(struct json *j, const char *p)
{
	uint64_t curly[JSON_DEPTH / 64]; /* one bit a level: brace or bracket */
	unsigned depth = 0;
	for (;;) {
		p = json_scan_structure(p, j->end);
		if (p >= j->end)
			return json_fail(j, j->end, "a closing bracket");
		char c = *p++;
		if (c == '"') {
			bool escaped;
			p = string_end(j, p, &escaped);
			if (!p)
				return NULL;
		} else if (c == '{' || c == '[') {
			if (depth == JSON_DEPTH)
				return json_fail(j, p - 1, json_too_deep);
			uint64_t level = 1ull << (depth % 64), *bits = &curly[depth / 64];
			if (depth % 64 == 0)
				*bits = 0;
			*bits = c == '{' ? *bits | level : *bits & ~level;
			depth++;
		} else {
			depth--;
			bool opened_curly = curly[depth / 64] >> (depth % 64) & 1;
			if (opened_curly != (c == '}'))
				return json_fail(j, p - 1, opened_curly ? "'}'" : "']'");
			if (depth == 0)
				return p;
		}
	}
}

/* Bytes of numbers, literals and bare words. */
static const bool is_word[256] = {
	['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true,
	['-'] = true, ['+'] = true, ['.'] = true, ['/'] = true, ['_'] = true,
};

static const char *json_word(struct json *j, const char *p, struct json_value *v)
{
	const char *begin = p;
	while (is_word[(unsigned char)*p])
		p++;
	v->raw = (struct str){begin, (size_t)(p - begin)};
	if (p == begin || p >= j->end)
		return json_fail(j, p, "a value");
	bool sign = *begin == '-';
	if (begin[sign] >= '0' && begin[sign] <= '9') {
		v->type = JSON_NUMBER;
	} else if (str_eq(v->raw, STR("true"))) {
		v->type = JSON_TRUE;
	} else if (str_eq(v->raw, STR("false"))) {
		v->type = JSON_FALSE;
	} else if (str_eq(v->raw, STR("null"))) {
		v->type = JSON_NULL;
	} else {
		v->type = JSON_BARE;
		j->repairs |= JSON_REPAIR_BARE;
	}
	return p;
}

const char *json_value(struct json *j, const char *p, struct json_value *v)
{
	if (*p == '"')
		return json_string_(j, p, v);
	v->escaped = false;
	if (*p == '{' || *p == '[') {
		const char *begin = p;
		v->type = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
		p = container_end(j, p);
		if (p)
			v->raw = (struct str){begin, (size_t)(p - begin)};
		return p;
	}
	return json_word(j, p, v);
}

const char *json_skip(struct json *j, const char *p)
{
	struct json_value v;
	return json_value(j, p, &v);
}

/* Past the comma before the next member or element; surplus commas are passed over. */
static inline const char *separator(struct json *j, const char *p, bool *first, char close, const char *expected)
{
	p = json_space(p);
	if (!*first) {
		if (*p == close)
			return p;
		if (*p != ',')
			return json_fail(j, p, expected);
		p = json_space(p + 1);
		if (*p == close)
			j->repairs |= JSON_REPAIR_COMMA;
	}
	*first = false;
	while (*p == ',') {
		j->repairs |= JSON_REPAIR_COMMA;
		p = json_space(p + 1);
	}
	return p;
}

const char *json_member(struct json *j, const char *p, bool *first, struct json_value *key)
{
	p = separator(j, p, first, '}', "',' or '}'");
	if (!p)
		return NULL;
	if (*p == '}') {
		key->raw = (struct str){NULL, 0};
		return p + 1;
	}
	p = json_string_(j, p, key);
	if (!p)
		return NULL;
	if (*p != ':')
		p = json_space(p);
	if (*p != ':')
		return json_fail(j, p, "':'");
	return json_space(p + 1);
}

const char *json_element(struct json *j, const char *p, bool *first, bool *done)
{
	p = separator(j, p, first, ']', "',' or ']'");
	if (!p)
		return NULL;
	*done = *p == ']';
	if (!*done && p >= j->end)
		return json_fail(j, p, "a value or ']'");
	return *done ? p + 1 : p;
}

static int hex4(const char *p, const char *end)
{
	int v = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

static bool has_unknown_escape(struct str raw)
{
	const char *end = raw.p + raw.n;
	for (const char *p = raw.p; p < end; p++) {
		if (*p != '\\')
			continue;
		p++;
		if (p >= end || !strchr("\"\\/bfnrtu", *p) || !*p || (*p == 'u' && hex4(p + 1, end) < 0))
			return true;
	}
	return false;
}

static void json_put_utf8(struct buf *out, unsigned c)
{
	if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_char(out, (char)(0xe0 | c >> 12));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else {
		buf_char(out, (char)(0xf0 | c >> 18));
		buf_char(out, (char)(0x80 | (c >> 12 & 63)));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	}
}

/* The code point of the \uXXXX whose digits begin at p; *used gets how many bytes it took, a second half included. */
static unsigned utf16(const char *p, const char *end, size_t *used, unsigned *repairs)
{
	unsigned c = (unsigned)hex4(p, end);
	*used = 4;
	if (c < 0xd800 || c > 0xdfff)
		return c;
	if (c < 0xdc00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u') {
		int low = hex4(p + 6, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*used = 10;
			return 0x10000 + ((c - 0xd800) << 10) + ((unsigned)low - 0xdc00);
		}
	}
	*repairs |= JSON_REPAIR_UTF16;
	return 0xfffd;
}

void json_unescape(struct str raw, struct buf *out, unsigned *repairs)
{
	bool literal = has_unknown_escape(raw);
	if (literal)
		*repairs |= JSON_REPAIR_ESCAPE;
	const char *end = raw.p + raw.n;
	for (const char *p = raw.p; p < end;) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		if (!slash || slash + 1 >= end) {
			buf_put(out, p, (size_t)(end - p));
			return;
		}
		buf_put(out, p, (size_t)(slash - p));
		char c = slash[1];
		p = slash + 2;
		if (c == '"' || c == '\\') {
			buf_char(out, c);
		} else if (literal) {
			buf_char(out, '\\');
			p = slash + 1;
		} else if (c == 'u') {
			size_t used;
			json_put_utf8(out, utf16(p, end, &used, repairs));
			p += used;
		} else {
			static const char from[] = "/bfnrt", to[] = "/\b\f\n\r\t";
			buf_char(out, to[strchr(from, c) - from]);
		}
	}
}

void json_one_line(struct str raw, struct buf *out)
{
	bool in_string = false;
	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];
		if (!in_string && (unsigned char)c <= ' ')
			continue;
		buf_char(out, c);
		if (c == '\\' && in_string && i + 1 < raw.n)
			buf_char(out, raw.p[++i]);
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == ',' || c == ':'))
			buf_char(out, ' ');
	}
}

static const uint64_t power_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* The value of 1 to 8 digits; false when a byte is no digit. Each step adds neighbours: digits to pairs, pairs to fours, fours to one. */
static inline bool digits_to_8(const char *p, size_t n, uint64_t *v)
{
	uint64_t x;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	/* The last digit comes to the highest byte. Parts may overlap, where both hold the same, so that nothing outside the text is read. */
	if (n == 8) {
		memcpy(&x, p, 8);
	} else if (n >= 4) {
		uint32_t low, high;
		memcpy(&low, p, 4);
		memcpy(&high, p + n - 4, 4);
		x = (uint64_t)low << (64 - 8 * n) | (uint64_t)high << 32;
	} else {
		x = (uint64_t)(uint8_t)p[0] << (64 - 8 * n) | (uint64_t)(uint8_t)p[n / 2] << (64 - 8 * (n - n / 2)) | (uint64_t)(uint8_t)p[n - 1] << 56;
	}
	unsigned absent = (unsigned)(64 - 8 * n);
	uint64_t zeros = 0x3030303030303030u << absent, high_halves = 0xf0f0f0f0f0f0f0f0u << absent;
	if ((x & high_halves) != zeros || ((x + (0x0606060606060606u << absent)) & high_halves) != zeros)
		return false;
	x &= 0x0f0f0f0f0f0f0f0fu;
	x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffu;
	x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffu;
	*v = (x * 10000 + (x >> 32)) & 0xffffffffu;
	return true;
#else
	x = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned d = (unsigned)(p[i] - '0');
		if (d > 9)
			return false;
		x = x * 10 + d;
	}
	*v = x;
	return true;
#endif
}

/* The value of 1 to 16 digits. */
static inline bool digits_to_16(const char *p, size_t n, uint64_t *v)
{
	uint64_t low;
	if (n <= 8)
		return digits_to_8(p, n, v);
	if (!digits_to_8(p, n - 8, v) || !digits_to_8(p + n - 8, 8, &low))
		return false;
	*v = *v * 100000000 + low;
	return true;
}

/* "123", "123.4", "123.45" or "123.456", with at most 16 digits before the point and no more decimals than `digits`: no overflow, no rounding. */
static bool short_scaled(struct str raw, int digits, int64_t *v)
{
	enum { DECIMALS = 3 };
	if (!raw.n || raw.n > 16 + 1 + DECIMALS || digits > 9)
		return false;
	size_t decimals = 0;
	for (size_t n = 1; n <= DECIMALS && n + 1 < raw.n; n++)
		if (raw.p[raw.n - 1 - n] == '.')
			decimals = n;
	size_t whole = decimals ? raw.n - 1 - decimals : raw.n;
	uint64_t x, fraction = 0;
	if (whole > 16 || decimals > (size_t)digits || !digits_to_16(raw.p, whole, &x) || (decimals && !digits_to_8(raw.p + whole + 1, decimals, &fraction)))
		return false;
	if (__builtin_mul_overflow(x, power_of_ten[digits], &x) || __builtin_add_overflow(x, fraction * power_of_ten[(size_t)digits - decimals], &x) || x > INT64_MAX)
		return false;
	*v = (int64_t)x;
	return true;
}

bool json_to_scaled(struct str raw, int digits, int64_t *v)
{
	if (short_scaled(raw, digits, v))
		return true;
	const char *p = raw.p, *end = p + raw.n;
	bool neg = p < end && *p == '-';
	p += neg;
	if (p >= end || *p < '0' || *p > '9')
		return false;
	/* The digits, with a count of those behind the point; more than 18 significant ones cannot matter to an int64
	 * but for the rounding, so the rest is dropped after noting the first dropped digit. */
	const char *first = p, *point = NULL;
	int64_t exponent = 0;
	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++)
		if (*p == '.')
			point = p;
	const char *stop = p;
	if (p < end && (*p | 32) == 'e') {
		struct str x = {p + 1, (size_t)(end - p - 1)};
		if (x.n && *x.p == '+')
			x.p++, x.n--;
		if (!str_to_i64(x, &exponent) || exponent > 1000 || exponent < -1000)
			return false;
	} else if (p != end) {
		return false;
	}
	/* Position of the decimal point relative to `first`, in digits, after scaling. */
	int64_t whole = (point ? point - first : stop - first) + exponent + digits;
	uint64_t x = 0;
	int64_t at = 0;
	bool round_up = false;
	for (const char *q = first; q < stop; q++) {
		if (*q == '.')
			continue;
		if (at == whole)
			round_up = *q >= '5';
		if (at >= whole)
			break;
		if (__builtin_mul_overflow(x, 10u, &x) || __builtin_add_overflow(x, (unsigned)(*q - '0'), &x))
			return false;
		at++;
	}
	for (; at < whole && x; at++)
		if (__builtin_mul_overflow(x, 10u, &x))
			return false;
	x += round_up;
	if (x > (uint64_t)INT64_MAX)
		return false;
	*v = neg ? -(int64_t)x : (int64_t)x;
	return true;
}

bool json_to_i64(struct str raw, int64_t *v)
{
	uint64_t digits;
	if (raw.n && raw.n <= 16 && digits_to_16(raw.p, raw.n, &digits)) {
		*v = (int64_t)digits;
		return true;
	}
	if (str_to_i64(raw, v))
		return true;
	/* A fraction or an exponent: exact as long as it fits, the fraction is cut off. */
	double f;
	if (!json_to_f64(raw, &f) || !(f > -9.2e18 && f < 9.2e18))
		return false;
	const char *dot = memchr(raw.p, '.', raw.n);
	if (dot && !memchr(raw.p, 'e', raw.n) && !memchr(raw.p, 'E', raw.n))
		return str_to_i64((struct str){raw.p, (size_t)(dot - raw.p)}, v);
	*v = (int64_t)f;
	return true;
}

/* Up to 15 digits: both the digits and the power of ten are exact doubles, so one division rounds correctly. */
static bool short_f64(struct str raw, double *v)
{
	static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	if (raw.n > 16)
		return false;
	uint64_t x = 0;
	size_t i = 0, digits = 0, point = 0;
	for (; i < raw.n; i++) {
		unsigned d = (unsigned)(raw.p[i] - '0');
		if (d < 10)
			x = x * 10 + d, digits++;
		else if (raw.p[i] == '.' && !point && i)
			point = i + 1;
		else
			return false;
	}
	if (digits == 0 || digits > 15)
		return false;
	*v = (double)x / tens[point ? raw.n - point : 0];
	return true;
}

bool json_to_f64(struct str raw, double *v)
{
	if (short_f64(raw, v))
		return true;
	char text[64];
	if (raw.n == 0 || raw.n >= sizeof text)
		return false;
	memcpy(text, raw.p, raw.n);
	text[raw.n] = 0;
	if (strspn(text, "0123456789+-.eE") != raw.n)
		return false; /* strtod takes hexadecimal as well */
	char *end;
	*v = strtod(text, &end);
	return end == text + raw.n;
}
