#include "base/str.h"

#include <ctype.h>

ptrdiff_t str_find(struct str s, struct str needle)
{
	if (needle.n == 0)
		return 0;
	if (s.n < needle.n)
		return -1;
	const char *hit = memmem(s.p, s.n, needle.p, needle.n);
	return hit ? hit - s.p : -1;
}

static int str_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : (unsigned char)c;
}

/* Where the character first stands from `p` on; `end` = nowhere. */
static const char *str_find_char(const char *p, const char *end, char c)
{
	const char *at = p < end ? memchr(p, c, (size_t)(end - p)) : NULL;
	return at ? at : end;
}

/* Names may have tens of thousands of characters, and dozens of words are looked for in each: a word is compared only where its first letter stands. */
bool str_has_nocase(struct str s, struct str needle)
{
	if (needle.n == 0 || needle.n > s.n)
		return needle.n == 0;
	const char *end = s.p + (s.n - needle.n) + 1, *at[2];
	const char low = str_lower(needle.p[0]), first[2] = {low, low >= 'a' && low <= 'z' ? (char)(low - 'a' + 'A') : low};
	for (int i = 0; i < 2; i++)
		at[i] = str_find_char(s.p, end, first[i]);
	while (at[0] < end || at[1] < end) {
		const int i = at[1] < at[0];
		size_t k = 1;
		while (k < needle.n && str_lower(at[i][k]) == str_lower(needle.p[k]))
			k++;
		if (k == needle.n)
			return true;
		at[i] = str_find_char(at[i] + 1, end, first[i]);
	}
	return false;
}

bool str_has_any_nocase(struct str s, const char *const *list)
{
	for (; *list; list++)
		if (str_has_nocase(s, str_from(*list)))
			return true;
	return false;
}

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;
	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static size_t digit_run(struct str s, size_t at)
{
	size_t n = 0;
	while (at + n < s.n && isdigit((unsigned char)s.p[at + n]))
		n++;
	return n;
}

int str_cmp_natural(struct str a, struct str b)
{
	size_t i = 0, j = 0;
	while (i < a.n && j < b.n) {
		size_t da = digit_run(a, i), db = digit_run(b, j);
		if (da && db) {
			size_t za = 0, zb = 0;
			while (za + 1 < da && a.p[i + za] == '0')
				za++;
			while (zb + 1 < db && b.p[j + zb] == '0')
				zb++;
			if (da - za != db - zb)
				return da - za < db - zb ? -1 : 1;
			int c = memcmp(a.p + i + za, b.p + j + zb, da - za);
			if (c)
				return c;
			i += da;
			j += db;
			continue;
		}
		if (a.p[i] != b.p[j])
			return (unsigned char)a.p[i] < (unsigned char)b.p[j] ? -1 : 1;
		i++;
		j++;
	}
	if (i < a.n || j < b.n)
		return i < a.n ? 1 : -1;
	return str_cmp(a, b);
}

bool str_split(struct str *s, char sep, struct str *piece)
{
	if (!s->p)
		return false;
	const char *hit = s->n ? memchr(s->p, sep, s->n) : NULL;
	if (!hit) {
		*piece = *s;
		*s = (struct str){NULL, 0};
		return true;
	}
	size_t n = (size_t)(hit - s->p);
	*piece = (struct str){s->p, n};
	*s = (struct str){hit + 1, s->n - n - 1};
	return true;
}

bool str_has_word(const char *words, struct str word)
{
	struct str rest = str_from(words), one;
	while (str_split(&rest, ' ', &one))
		if (str_eq(one, word))
			return true;
	return false;
}

bool str_to_i64(struct str s, int64_t *v)
{
	size_t i = 0;
	bool neg = s.n > 1 && s.p[0] == '-';
	if (neg)
		i = 1;
	if (i == s.n)
		return false;
	int64_t x = 0;
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		int d = s.p[i] - '0';
		if (__builtin_mul_overflow(x, 10, &x) || __builtin_sub_overflow(x, d, &x))
			return false;
	}
	if (!neg && x == INT64_MIN)
		return false;
	*v = neg ? x : -x;
	return true;
}
