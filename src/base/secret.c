#include "base/secret.h"

#include "base/search.h"
#include "base/str.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { PART_BYTES = 32, SUFFIX_BYTES_MIN = 6, KEY_BYTES_MIN = 16 };

/* Names whose last part is one of these, or ends in a long one, hold a secret ... */
static const char *const secret_parts[] = {"token", "secret", "password", "passwd", "passphrase", "passcode", "pass", "pwd", "pat", "auth", "cookie", "credential", "apikey", "accesskey", "secretkey", "authkey"};
/* ... but not these tokens, which are words of a language model; */
static const char *const harmless_tokens[] = {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "image", "stop", "special", "start", "end"};
/* ... and a key is a secret behind one of these. */
static const char *const secret_keys[] = {"api", "access", "secret", "private", "auth", "account", "encryption", "signing", "license", "storage", "wandb", "openai"};
/* How keys of well-known services begin. */
static const char *const key_starts[] = {"hf_", "sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "eyJ"};
/* What stands before a secret inside a word. */
static const char *const schemes[] = {"Bearer ", "Basic ", "Authorization: token "};

#define IN(text, list) is_one_of(text, list, sizeof(list) / sizeof(list)[0])
static bool is_one_of(const char *text, const char *const *list, size_t n)
{
	return ANY_WHERE(i, 0, n, strcmp(text, list[i]) == 0);
}

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool secret_is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* Copies the last part of name[0..*n) in lower case and shortens *n by it: of "--hf_apiKey" "key", then "api", then "hf". A part that is too long is "". */
static void take_part(const char *name, size_t *n, char part[PART_BYTES])
{
	size_t end = *n;
	while (end && !secret_is_lower(name[end - 1]) && !is_upper(name[end - 1]) && !is_digit(name[end - 1]))
		end--;
	size_t from = end;
	while (from && (secret_is_lower(name[from - 1]) || is_upper(name[from - 1]) || is_digit(name[from - 1]))) {
		from--;
		if (is_upper(name[from]) && from && secret_is_lower(name[from - 1]))
			break;
	}
	size_t length = end - from < PART_BYTES ? end - from : 0;
	for (size_t i = 0; i < length; i++)
		part[i] = is_upper(name[from + i]) ? (char)(name[from + i] - 'A' + 'a') : name[from + i];
	part[length] = 0;
	*n = from;
}

static bool is_plain_name(const char *name, size_t n)
{
	return !ANY_WHERE(i, 0, n, !secret_is_lower(name[i]) && !is_upper(name[i]) && !is_digit(name[i]) && !(name[i] && strchr("-_.", name[i])));
}

/* "PGPASSWORD" */
static bool ends_like_secret(const char *part)
{
	size_t n = strlen(part);
	for (size_t i = 0; i < sizeof secret_parts / sizeof secret_parts[0]; i++) {
		size_t end = strlen(secret_parts[i]);
		if (end >= SUFFIX_BYTES_MIN && n > end && strcmp(part + n - end, secret_parts[i]) == 0)
			return true;
	}
	return false;
}

/* Of "TOKEN_1", "token1" and "keys" what "TOKEN" and "key" are; tokens are what a language model reads. */
static void take_name(const char *name, size_t *n, char part[PART_BYTES])
{
	size_t length;
	do {
		take_part(name, n, part);
		for (length = strlen(part); length && is_digit(part[length - 1]); length--)
			part[length - 1] = 0;
	} while (!length && *n);
	if (length && part[length - 1] == 's' && strcmp(part, "tokens") != 0 && strcmp(part, "pass") != 0)
		part[length - 1] = 0;
}

static bool is_secret_name(const char *name, size_t n)
{
	char last[PART_BYTES], before[PART_BYTES];
	take_name(name, &n, last);
	take_part(name, &n, before);
	if (strcmp(last, "key") == 0)
		return IN(before, secret_keys);
	if (strcmp(last, "token") == 0)
		return !IN(before, harmless_tokens);
	return IN(last, secret_parts) || ends_like_secret(last);
}

/* The bytes of a command line from first to last; what has been looked at is written back to its front. */
struct masking {
	char *to;
	const char *from, *end;
};

static void secret_keep(struct masking *m, size_t n)
{
	memmove(m->to, m->from, n);
	m->to += n;
	m->from += n;
}

static void mask(struct masking *m, size_t n)
{
	size_t stars = n < 3 ? n : 3;
	memset(m->to, '*', stars);
	m->to += stars;
	m->from += n;
}

static size_t key_bytes(const char *at, size_t n)
{
	size_t bytes = 0;
	while (bytes < n && (secret_is_lower(at[bytes]) || is_upper(at[bytes]) || is_digit(at[bytes]) || (at[bytes] && strchr("-_.+/=", at[bytes]))))
		bytes++;
	return bytes;
}

/* How many of the n bytes at `at`, which follow a byte that is in no key, are a key by its look; 0 = none. */
static size_t key_here(const char *at, size_t n)
{
	for (size_t i = 0; i < sizeof key_starts / sizeof key_starts[0]; i++) {
		size_t start = strlen(key_starts[i]), bytes = n >= start && memcmp(at, key_starts[i], start) == 0 ? key_bytes(at, n) : 0;
		if (bytes >= KEY_BYTES_MIN)
			return bytes;
	}
	return 0;
}

/* The password of "//user:password@host", `at` being behind its "//": *before bytes stand in front of it. 0 = there is none. */
static size_t password_here(const char *at, size_t n, size_t *before)
{
	size_t colon = 0, sign;
	while (colon < n && at[colon] != ':' && at[colon] != '/' && at[colon] != '@')
		colon++;
	if (colon == n || at[colon] != ':')
		return 0;
	size_t last = 0; /* a password may have an @ in it */
	for (sign = colon + 1; sign < n && at[sign] && !strchr("/ \t\n\"'", at[sign]); sign++)
		last = at[sign] == '@' ? sign : last;
	*before = colon + 1;
	return last ? last - colon - 1 : 0;
}

/* Up to what ends a value inside a shell's command or a URL. */
static size_t value_bytes(const char *at, size_t n)
{
	size_t bytes = 0;
	while (bytes < n && at[bytes] && !strchr(" \t\n\"'&;|,)", at[bytes]))
		bytes++;
	return bytes;
}

/* How many bytes stand between m->from and a secret that begins there, and how long that secret is; *bytes 0 = none begins. */
static size_t secret_ahead(const struct masking *m, size_t n, size_t *bytes)
{
	size_t before = 0;
	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		before = strlen(schemes[i]);
		*bytes = n > before && strncasecmp(m->from, schemes[i], before) == 0 ? key_bytes(m->from + before, n - before) : 0;
		if (*bytes)
			return before;
	}
	*bytes = n > 2 && memcmp(m->from, "//", 2) == 0 ? password_here(m->from + 2, n - 2, &before) : 0;
	return before + 2;
}

/* Whether what is kept since `word` ends in an option without a value: "train --hf-token". */
static bool ends_in_option(const struct masking *m, const char *word)
{
	const char *at = m->to;
	while (at > word && !strchr(" \t\n", at[-1]))
		at--;
	return at < m->to && *at == '-' && !memchr(at, '=', (size_t)(m->to - at));
}

/* Of "cd x && API_KEY=abc train", at the '=', of "--hf-token abc" at the blank, of {"api_key": "abc"} at the ':': how long the value is when the name
 * before it is a secret's, else 0. *before bytes stand in front of the value. `word` is where the word begins in what is kept. */
static size_t value_behind(const struct masking *m, const char *word, size_t n, size_t *before)
{
	char sign = *m->from, next = n > 1 ? m->from[1] : 0;
	bool named = sign == '=' || (sign == ':' && next && strchr(" \"'", next)) || (sign == ' ' && next != '-' && ends_in_option(m, word));
	if (!named || !is_secret_name(word, (size_t)(m->to - word)))
		return 0;
	size_t at = 1;
	while (sign == ':' && at < n && m->from[at] == ' ')
		at++;
	bool quoted = at < n && (m->from[at] == '"' || m->from[at] == '\'');
	*before = at + quoted;
	const char *value = m->from + *before, *end = quoted ? memchr(value, value[-1], n - *before) : NULL;
	return end ? (size_t)(end - value) : quoted ? n - *before : value_bytes(value, n - *before);
}

/* The next n bytes, which are a word, or the value of an option. */
static void mask_inside(struct masking *m, size_t n)
{
	const char *end = m->from + n, *word = m->to;
	bool fresh = true; /* a key may begin at this byte */
	while (m->from < end) {
		size_t left = (size_t)(end - m->from), bytes = fresh ? key_here(m->from, left) : 0, before = 0;
		if (!bytes)
			before = secret_ahead(m, left, &bytes);
		if (!bytes)
			bytes = value_behind(m, word, left, &before);
		if (bytes) {
			secret_keep(m, before);
			mask(m, bytes);
			fresh = false;
		} else {
			fresh = !key_bytes(m->from, 1) || *m->from == '=';
			secret_keep(m, 1);
		}
	}
}

/* A word whose value is masked to its end, or that is looked through. True: the next word is a secret. */
static bool mask_word(struct masking *m, size_t n)
{
	const char *equals = memchr(m->from, '=', n);
	size_t name = equals ? (size_t)(equals - m->from) : n;
	bool option = n && *m->from == '-', secret = (option || equals) && is_secret_name(m->from, name);
	if (secret && equals && is_plain_name(m->from, name)) {
		secret_keep(m, name + 1);
		mask(m, n - name - 1);
	} else {
		mask_inside(m, n);
	}
	return secret && option && !equals;
}

size_t secret_mask(char *words, size_t n)
{
	struct masking m = {words, words, words + n};
	bool named = false; /* the word before is the option of a secret */
	while (m.from < m.end) {
		size_t length = strnlen(m.from, (size_t)(m.end - m.from));
		if (named && *m.from != '-')
			mask(&m, length), named = false;
		else
			named = mask_word(&m, length);
		if (m.from < m.end)
			secret_keep(&m, 1);
	}
	return (size_t)(m.to - words);
}
