/* A string is a pointer and a length; it is NUL-terminated only where the operating system asks for it.
 * A struct str owns nothing: its bytes live in an arena, an interner, a buffer or the program text. */
#ifndef OPSCOPE_BASE_STR_H
#define OPSCOPE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_from(const char *c)
{
	return (struct str){c, c ? strlen(c) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_eqc(struct str a, const char *c)
{
	return str_eq(a, str_from(c));
}

/* Whether `s` is one of list[0 .. n). */
static inline bool str_in(struct str s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eqc(s, list[i]))
			return true;
	return false;
}
#define STR_IN(s, list) str_in(s, list, sizeof(list) / sizeof(list)[0]) /* of an array */

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; } /* in every locale */

/* Whether one of a NULL-terminated list is in it (ASCII, whatever the case). */
bool str_has_any_nocase(struct str s, const char *const *list);

/* Cuts `prefix` off *s; false, and *s as before, where *s does not begin with it. */
static inline bool str_skip(struct str *s, struct str prefix)
{
	bool is = str_starts(*s, prefix);
	if (is)
		*s = (struct str){s->p + prefix.n, s->n - prefix.n};
	return is;
}

/* Without the blanks at both ends. */
static inline struct str str_trim(struct str s)
{
	while (s.n && s.p[0] == ' ')
		s = (struct str){s.p + 1, s.n - 1};
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

/* First occurrence of `needle` in `s`, or -1. An empty needle is found at 0. */
ptrdiff_t str_find(struct str s, struct str needle);
static inline bool str_has(struct str s, struct str needle) { return str_find(s, needle) >= 0; }

/* Case-insensitive (ASCII) substring search, as --filter uses. */
bool str_has_nocase(struct str s, struct str needle);

/* memcmp order, shorter first when one is a prefix of the other. */
int str_cmp(struct str a, struct str b);

/* Natural order: runs of digits compare as numbers ("rank2" < "rank10"). */
int str_cmp_natural(struct str a, struct str b);

/* Cuts the next piece before `sep` off *s. Returns false when *s is exhausted (s->p == NULL). */
bool str_split(struct str *s, char sep, struct str *piece);

/* Whether `word` is one of `words`, which blanks separate; NULL = none. */
bool str_has_word(const char *words, struct str word);

/* The whole of `s` as a decimal integer; false when it is not one or does not fit. */
bool str_to_i64(struct str s, int64_t *v);

#endif
