#include "analysis/steps/serving.h"

#include <assert.h>
#include <stddef.h>

const char *const serving_phase_name[SERVING_PHASES] = {
	[SERVING_UNKNOWN] = "unknown", [SERVING_PREFILL] = "prefill", [SERVING_DECODE] = "decode",
	[SERVING_MIXED] = "mixed",     [SERVING_IDLE] = "idle",       [SERVING_CAPTURE] = "capture",
};

/* Counts of a part, and of all of them where they lie in struct serving. */
enum { PART_COUNTS = sizeof(struct serving_part) / sizeof(int64_t) };
_Static_assert(sizeof(struct serving_part) == PART_COUNTS * sizeof(int64_t), "a part is counts alone");

#define IN_PART(part, count) (offsetof(struct serving, part) + offsetof(struct serving_part, count))
enum serving_count {
	NO_COUNT, ONE_EACH,
	ALL_REQUESTS = IN_PART(all, requests), ALL_TOKENS = IN_PART(all, tokens), ALL_KEYS = IN_PART(all, keys),
	PREFILL_REQUESTS = IN_PART(prefill, requests), PREFILL_TOKENS = IN_PART(prefill, tokens), PREFILL_KEYS = IN_PART(prefill, keys),
	PREFILL_QUERIES2 = IN_PART(prefill, queries2), PREFILL_PAIRS = IN_PART(prefill, pairs),
	DECODE_REQUESTS = IN_PART(decode, requests), DECODE_TOKENS = IN_PART(decode, tokens), DECODE_KEYS = IN_PART(decode, keys),
	DECODE_QUERIES2 = IN_PART(decode, queries2), DECODE_PAIRS = IN_PART(decode, pairs),
	PADDED = offsetof(struct serving, padded),
};

enum { FORMAT_COUNTS = 12, KEY_BYTES = 8 };
#define SERVING_BY_PARTS SERVING_UNKNOWN

#define SERVING_KEY(...)
#define SERVING_FORMAT(phase, text, ...) {text, SERVING_##phase, {__VA_ARGS__}},
static const struct serving_format {
	const char *text;
	enum serving_phase phase;
	enum serving_count count[FORMAT_COUNTS];
} serving_formats[] = {
#include "analysis/steps/serving_formats.def"
};
#undef SERVING_KEY
#undef SERVING_FORMAT

#define SERVING_FORMAT(...)
#define SERVING_KEY(key, count) {key, count},
static const struct serving_key {
	char key[KEY_BYTES];
	enum serving_count count;
} serving_keys[] = {
#include "analysis/steps/serving_formats.def"
};
#undef SERVING_KEY
#undef SERVING_FORMAT

_Static_assert(sizeof serving_formats / sizeof serving_formats[0] <= SERVING_FORMATS, "room for all formats");

/* No server writes longer ones, but for lists of many requests. */
enum { SERVING_LONGEST = 4096 };

static int64_t *serving_at(struct serving *x, enum serving_count c)
{
	assert(c >= ALL_REQUESTS);
	return (int64_t *)((char *)x + c);
}

static bool serving_sum(int64_t *sum, int64_t v)
{
	return !__builtin_add_overflow(*sum, v, sum);
}

static struct str serving_rest(struct str s, size_t n)
{
	return (struct str){s.p + n, s.n - n};
}

/* Takes a number off the front. */
static bool take_number(struct str *s, int64_t *v)
{
	size_t n = 0;
	while (n < s->n && is_digit(s->p[n]))
		n++;
	if (!n || !str_to_i64((struct str){s->p, n}, v))
		return false;
	*s = serving_rest(*s, n);
	return true;
}

static bool take_word(struct str *s, struct str *word)
{
	size_t n = 0;
	while (n < s->n && ((s->p[n] >= 'A' && s->p[n] <= 'Z') || s->p[n] == '_'))
		n++;
	*word = (struct str){s->p, n};
	*s = serving_rest(*s, n);
	return n > 0;
}

static bool take_char(struct str *s, char c)
{
	bool has = s->n && s->p[0] == c;
	if (has)
		*s = serving_rest(*s, 1);
	return has;
}

/* "[512, 2048]": the sum. */
static bool take_list(struct str *s, int64_t *sum)
{
	int64_t v;
	*sum = 0;
	if (!take_char(s, '['))
		return false;
	if (take_char(s, ']'))
		return true;
	do {
		while (take_char(s, ' '))
			;
		if (!take_number(s, &v) || !serving_sum(sum, v))
			return false;
	} while (take_char(s, ','));
	return take_char(s, ']');
}

/* What a key that is not known has: up to the next blank outside of brackets, or the bracket that ends the name. */
static bool pass_over(struct str *s)
{
	size_t n = 0;
	int depth = 0;
	for (; n < s->n; n++) {
		char c = s->p[n];
		depth += c == '[' || c == '(';
		if (!depth && (c == ' ' || c == ']'))
			break;
		depth -= c == ']' || c == ')';
		if (depth < 0)
			return false;
	}
	*s = serving_rest(*s, n);
	return n > 0 && depth == 0;
}

static enum serving_count count_of_key(struct str key)
{
	for (size_t i = 0; i < sizeof serving_keys / sizeof serving_keys[0]; i++)
		if (str_eqc(key, serving_keys[i].key))
			return serving_keys[i].count;
	return NO_COUNT;
}

/* One "key=value". A key that comes twice is not what a server writes. */
static bool take_pair(struct str *s, struct serving *x)
{
	size_t n = 0;
	while (n < s->n && (is_digit(s->p[n]) || s->p[n] == '_' || (s->p[n] >= 'a' && s->p[n] <= 'z')))
		n++;
	struct str key = {s->p, n};
	*s = serving_rest(*s, n);
	if (!n || !take_char(s, '='))
		return false;
	enum serving_count c = count_of_key(key);
	if (c == NO_COUNT)
		return pass_over(s);
	int64_t *v = serving_at(x, c);
	if (*v != SERVING_NOT_TOLD)
		return false;
	if (s->n && s->p[0] == '[')
		return take_list(s, v);
	return take_number(s, v) && (c != ALL_REQUESTS || !take_char(s, '/') || take_number(s, &x->padded));
}

static bool take_pairs(struct str *s, struct serving *x)
{
	do {
		if (!take_pair(s, x))
			return false;
	} while (take_char(s, ' '));
	return true;
}

static bool serving_fits(const struct serving_format *f, struct str s, struct serving *x)
{
	unsigned numbers = 0;
	int64_t v;
	for (const char *t = f->text; *t; t++) {
		bool ok;
		enum serving_count c = *t == '#' ? f->count[numbers++] : NO_COUNT;
		if (*t == '#')
			ok = take_number(&s, c == NO_COUNT ? &v : serving_at(x, c));
		else
			ok = *t == '@' ? take_word(&s, &x->mode) : *t == '$' ? take_pairs(&s, x) : take_char(&s, *t);
		if (!ok)
			return false;
	}
	return s.n == 0;
}

static void part_set(struct serving_part *x, int64_t v)
{
	*x = (struct serving_part){v, v, v, v, v};
}

static int64_t *part_count(struct serving_part *x, int i)
{
	return (int64_t *)x + i;
}

static void part_fill(struct serving_part *x, const struct serving_part *from)
{
	for (int i = 0; i < PART_COUNTS; i++)
		if (*part_count(x, i) == SERVING_NOT_TOLD)
			*part_count(x, i) = ((const int64_t *)from)[i];
}

static void part_add(struct serving_part *x, const struct serving_part *more)
{
	for (int i = 0; i < PART_COUNTS; i++) {
		int64_t *sum = part_count(x, i), v = ((const int64_t *)more)[i];
		if (*sum == SERVING_NOT_TOLD || v == SERVING_NOT_TOLD || !serving_sum(sum, v))
			*sum = SERVING_NOT_TOLD;
	}
}

static enum serving_phase phase_of_parts(const struct serving *x)
{
	bool prefill = x->prefill.requests > 0, decode = x->decode.requests > 0;
	return prefill && decode ? SERVING_MIXED : prefill ? SERVING_PREFILL : decode ? SERVING_DECODE : SERVING_IDLE;
}

/* What follows: of one phase all is that part, and the other part is empty; of two, all is their sum. */
static void serving_complete(struct serving *x, bool one_each)
{
	struct serving_part none, sum;
	part_set(&none, 0);
	if (x->phase == SERVING_PREFILL)
		part_fill(&x->prefill, &x->all);
	if (x->phase == SERVING_DECODE)
		part_fill(&x->decode, &x->all);
	if (one_each && x->decode.tokens == SERVING_NOT_TOLD)
		x->decode.tokens = x->decode.requests;
	if (x->phase == SERVING_PREFILL || x->phase == SERVING_IDLE)
		part_fill(&x->decode, &none);
	if (x->phase == SERVING_DECODE || x->phase == SERVING_IDLE)
		part_fill(&x->prefill, &none);
	sum = x->prefill;
	part_add(&sum, &x->decode);
	part_fill(&x->all, &sum);
}

bool serving_parse(struct str name, struct serving *out)
{
	if (name.n > SERVING_LONGEST)
		return false;
	for (size_t i = 0; i < sizeof serving_formats / sizeof serving_formats[0]; i++) {
		struct serving x = {.phase = serving_formats[i].phase, .padded = SERVING_NOT_TOLD, .iterations = 1, .format = (unsigned)i};
		part_set(&x.all, SERVING_NOT_TOLD);
		x.prefill = x.decode = x.all;
		if (!serving_fits(&serving_formats[i], name, &x))
			continue;
		if (x.phase == SERVING_BY_PARTS)
			x.phase = phase_of_parts(&x);
		serving_complete(&x, serving_formats[i].count[0] == ONE_EACH);
		*out = x;
		return true;
	}
	return false;
}

void serving_fill(struct serving *x, const struct serving *from)
{
	if (x->phase == SERVING_UNKNOWN)
		x->phase = from->phase;
	part_fill(&x->prefill, &from->prefill);
	part_fill(&x->decode, &from->decode);
	part_fill(&x->all, &from->all);
	if (x->padded == SERVING_NOT_TOLD)
		x->padded = from->padded;
}

void serving_add(struct serving *x, const struct serving *more)
{
	if (x->phase == SERVING_IDLE)
		x->phase = more->phase;
	else if (more->phase != x->phase && more->phase != SERVING_IDLE)
		x->phase = SERVING_MIXED;
	part_add(&x->all, &more->all);
	part_add(&x->prefill, &more->prefill);
	part_add(&x->decode, &more->decode);
	if (x->padded == SERVING_NOT_TOLD || more->padded == SERVING_NOT_TOLD || !serving_sum(&x->padded, more->padded))
		x->padded = SERVING_NOT_TOLD;
	x->iterations += more->iterations;
}

int64_t serving_generated(const struct serving *x)
{
	return x->decode.tokens == x->decode.requests ? x->decode.requests : SERVING_NOT_TOLD;
}
