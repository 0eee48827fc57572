/* Short names of many kernels, told apart by what their full names differ in. */
#include "base/demangle.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/search.h"
#include "op/short_name.h"

#include <stdlib.h>

/* Names are input: beyond these, kernels of one name are numbered. */
enum { TOKENS_MAX = 128, DEPTH_MAX = 16, ALIKE_MAX = 2000, FULL_MAX = 4096 };

enum short_name_apart_rank { RANK_TYPE, RANK_WORD, RANK_NUMBER, RANKS };

struct token {
	struct str text;
	enum short_name_apart_rank rank;
};

struct one {
	struct str full, base; /* full: demangled */
	struct buf suffix;
	struct token *v;       /* of the full name */
	uint32_t n, number;    /* tokens; its place in the caller's list */
};

struct apart {
	struct one *v;
	struct arena arena;    /* tokens and demangled names */
};

static bool short_name_apart_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static enum short_name_apart_rank short_name_apart_rank_of(struct str s)
{
	static const char *const types[] = {"float", "double", "half", "__half", "__nv_bfloat16", "__hip_bfloat16", "Half", "BFloat16", "int", "long", "bool", "short",
	                                    "char", "complex", "half_t", "bfloat16_t", "__bfloat", "f16", "bf16", "f32", "tf32", "fp16", "fp32", "Float8_e4m3fn", "Float8_e5m2"};
	if (STR_IN(s, types))
		return RANK_TYPE;
	return s.p[0] >= '0' && s.p[0] <= '9' ? RANK_NUMBER : RANK_WORD;
}

static bool is_noise(struct str s)
{
	static const char *const noise[] = {"at", "native", "detail", "std", "c10", "cuda", "void", "const", "operator", "lambda", "instance", "anonymous", "namespace",
	                                    "unnamed", "Array", "array", "unsigned", "clone", "kd"};
	bool parameter = s.n == 2 && s.p[0] == 'T' && s.p[1] >= '0' && s.p[1] <= '9'; /* "T1": not spelt out */
	return parameter || STR_IN(s, noise);
}

/* A name of many parts differs from others in some of them: "cutlass_80_tensorop_..._tn_align8". */
static bool has_many_parts(struct str s)
{
	unsigned parts = 1;
	bool digit = false;
	for (size_t i = 0; i < s.n; i++) {
		parts += s.p[i] == '_';
		digit |= s.p[i] >= '0' && s.p[i] <= '9';
	}
	return digit && parts >= 5;
}

static uint32_t add_token(struct token *v, uint32_t n, struct str s, bool all)
{
	if (n == TOKENS_MAX || !s.n || (!all && is_noise(s)))
		return n;
	v[n] = (struct token){s, short_name_apart_rank_of(s)};
	return n + 1;
}

/* Behind the cast of a number that begins at `i`, "(unsigned long)" of "(unsigned long)4"; `i` when there is none. */
static size_t behind_cast(struct str s, size_t i)
{
	size_t end = i + 1;
	while (end < s.n && (short_name_apart_is_word(s.p[end]) || s.p[end] == ' '))
		end++;
	return end > i + 1 && end + 1 < s.n && s.p[end] == ')' && s.p[end + 1] >= '0' && s.p[end + 1] <= '9' ? end + 1 : i;
}

/* Words and numbers of the name before its parameters; `all`: of the whole name, with every word of it. */
static uint32_t tokens_of(struct str s, bool all, struct token *v)
{
	uint32_t n = 0;
	unsigned angle = 0;
	for (size_t i = 0; i < s.n;) {
		size_t from = i;
		while (i < s.n && short_name_apart_is_word(s.p[i]))
			i++;
		struct str word = {s.p + from, i - from}, part;
		if (!all && str_eqc(word, "char") && i < s.n && (s.p[i] == '*' || (s.p[i] == ' ' && i + 1 < s.n && s.p[i + 1] == '*')))
			continue; /* of arrays of addresses: of no element type */
		if (!all && has_many_parts(word)) {
			while (str_split(&word, '_', &part))
				n = add_token(v, n, part, all);
		} else {
			n = add_token(v, n, word, all);
		}
		if (i == s.n)
			break;
		if (!all && s.p[i] == '(' && behind_cast(s, i) > i) {
			i = behind_cast(s, i);
			continue;
		}
		angle += s.p[i] == '<';
		angle -= s.p[i] == '>' && angle;
		if (!all && s.p[i] == '(' && !angle && i && short_name_apart_is_word(s.p[i - 1]))
			break;
		i++;
	}
	return n;
}

static void find_tokens(struct apart *x, uint32_t *member, uint32_t n, bool all)
{
	struct token text[TOKENS_MAX];
	for (uint32_t i = 0; i < n; i++) {
		struct one *o = &x->v[member[i]];
		o->n = tokens_of(o->full, all, text);
		o->v = ARENA_ARRAY(&x->arena, o->n, struct token);
		memcpy(o->v, text, o->n * sizeof *text);
	}
}

static bool has_token(const struct one *o, struct str s)
{
	return ANY_WHERE(i, 0, o->n, str_eq(o->v[i].text, s));
}

/* "vectorized" of "vectorized_elementwise_kernel". */
static void put_token(struct buf *out, struct str s)
{
	static const char *const tails[] = {"_kernel", "_elementwise"};
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
		if (str_ends(s, str_from(tails[i])) && s.n > strlen(tails[i]))
			s.n -= strlen(tails[i]);
	if (str_starts(s, STR("gpu_kernel_impl_")))
		s = (struct str){s.p + 16, s.n - 16};
	buf_char(out, ' ');
	buf_str(out, str_eqc(s, "elementwise") ? STR("not vectorized") : s);
}

struct keyed {
	struct str key, full;
	uint32_t member;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	return str_cmp(x->key, y->key) ?: str_cmp(x->full, y->full);
}

/* How a set of names can be split. */
struct split {
	bool any;
	enum { BY_PLACE, BY_TYPE, BY_TOKEN } how; /* what stands at `at`; their first type; whether they have `token` */
	uint32_t at;
	struct str token;
};

static bool same_counts(const struct apart *x, const uint32_t *member, uint32_t n)
{
	return !ANY_WHERE(i, 1, n, x->v[member[i]].n != x->v[member[0]].n);
}

/* Of names with equally many tokens: the first place, of the best rank, where two differ. */
static struct split short_name_apart_split_at(const struct apart *x, const uint32_t *member, uint32_t n)
{
	struct split best = {.any = false};
	enum short_name_apart_rank rank = RANKS;
	const struct one *first = &x->v[member[0]];
	for (uint32_t t = 0; t < first->n; t++) {
		enum short_name_apart_rank here = first->v[t].rank;
		bool differ = false;
		for (uint32_t i = 1; i < n; i++) {
			const struct token *other = &x->v[member[i]].v[t];
			differ |= !str_eq(other->text, first->v[t].text);
			here = other->rank > here ? other->rank : here;
		}
		if (differ && here < rank) {
			best = (struct split){.any = true, .at = t};
			rank = here;
		}
	}
	return best;
}

static bool functions_differ(const struct apart *x, const uint32_t *member, uint32_t n)
{
	bool differ = false;
	for (uint32_t i = 0; i < n; i++)
		if (!x->v[member[i]].n)
			return false;
		else
			differ |= !str_eq(x->v[member[i]].v[0].text, x->v[member[0]].v[0].text);
	return differ;
}

static struct str first_type(const struct one *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->v[i].rank == RANK_TYPE)
			return o->v[i].text;
	return STR("");
}

static bool types_differ(const struct apart *x, const uint32_t *member, uint32_t n)
{
	return ANY_WHERE(i, 1, n, !str_eq(first_type(&x->v[member[i]]), first_type(&x->v[member[0]])));
}

/* Of others: their first types; else the first type that some have and some have not; else the function's own name; else the first other
 * token of the best rank. */
static struct split split_by(const struct apart *x, const uint32_t *member, uint32_t n)
{
	struct split best = {.any = false};
	enum short_name_apart_rank rank = RANKS;
	if (types_differ(x, member, n))
		return (struct split){.any = true, .how = BY_TYPE};
	if (functions_differ(x, member, n)) {
		best = (struct split){.any = true, .at = 0};
		rank = RANK_WORD;
	}
	for (uint32_t i = 0; i < n && i < 2; i++) {
		const struct one *from = &x->v[member[i ? n - 1 : 0]];
		for (uint32_t t = 0; t < from->n; t++) {
			if (from->v[t].rank < rank && ANY_WHERE(k, 0, n, !has_token(&x->v[member[k]], from->v[t].text))) {
				best = (struct split){.any = true, .how = BY_TOKEN, .token = from->v[t].text};
				rank = from->v[t].rank;
			}
		}
	}
	return best;
}

static struct str short_name_apart_key_of(const struct one *o, const struct split *s)
{
	switch (s->how) {
	case BY_TYPE:
		return first_type(o);
	case BY_TOKEN:
		return has_token(o, s->token) ? s->token : STR("");
	case BY_PLACE:
		break;
	}
	return o->v[s->at].text;
}

/* Appends what tells these names apart to their suffixes. `all`: the second try, with the whole names. */
static void tell_apart(struct apart *x, uint32_t *member, uint32_t n, bool all, unsigned depth);

static void number_them(struct apart *x, uint32_t *member, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		buf_printf(&x->v[member[i]].suffix, " #%u", i + 1);
}

static void split_them(struct apart *x, uint32_t *member, uint32_t n, const struct split *s, bool all, unsigned depth)
{
	struct keyed *k = NEW_ARRAY_RAW(n, struct keyed);
	for (uint32_t i = 0; i < n; i++)
		k[i] = (struct keyed){short_name_apart_key_of(&x->v[member[i]], s), x->v[member[i]].full, member[i]};
	qsort(k, n, sizeof *k, compare_keyed);
	for (uint32_t i = 0; i < n; i++) {
		member[i] = k[i].member;
		if (k[i].key.n)
			put_token(&x->v[member[i]].suffix, k[i].key);
	}
	uint32_t *end = NEW_ARRAY_RAW(n, uint32_t), parts = 0;
	for (uint32_t i = 1; i <= n; i++)
		if (i == n || !str_eq(k[i].key, k[i - 1].key))
			end[parts++] = i;
	mem_free(k);
	for (uint32_t i = 0, from = 0; i < parts; from = end[i++])
		tell_apart(x, member + from, end[i] - from, all, depth + 1);
	mem_free(end);
}

static void tell_apart(struct apart *x, uint32_t *member, uint32_t n, bool all, unsigned depth)
{
	if (n < 2)
		return;
	if (n > ALIKE_MAX || depth > DEPTH_MAX) {
		number_them(x, member, n);
		return;
	}
	struct split s = same_counts(x, member, n) ? short_name_apart_split_at(x, member, n) : split_by(x, member, n);
	if (s.any) {
		split_them(x, member, n, &s, all, depth);
	} else if (!all) {
		find_tokens(x, member, n, true);
		tell_apart(x, member, n, true, depth + 1);
	} else {
		number_them(x, member, n);
	}
}

static void short_name_apart_begin(struct apart *x, const struct str *full, uint32_t n)
{
	struct buf text = {0};
	for (uint32_t i = 0; i < n; i++) {
		struct one *o = &x->v[i];
		o->number = i;
		o->full = full[i];
		buf_clear(&text);
		if (demangle(full[i], &text) == DEMANGLE_DONE)
			o->full = arena_str(&x->arena, (struct str){text.p, text.n < FULL_MAX ? text.n : FULL_MAX});
		buf_clear(&text);
		kernel_short_name(&text, full[i]);
		o->base = text.n ? arena_str(&x->arena, buf_view(&text)) : STR("");
	}
	buf_release(&text);
}

/* A suffix may make a name that another one is by itself. */
static void short_name_apart_finish(struct apart *x, struct arena *a, uint32_t *member, uint32_t n, struct str *out)
{
	struct intern seen;
	struct buf text = {0};
	intern_init(&seen);
	for (uint32_t i = 0; i < n; i++) {
		struct one *o = &x->v[member[i]];
		buf_clear(&text);
		buf_str(&text, o->base);
		buf_str(&text, buf_view(&o->suffix));
		size_t length = text.n;
		for (unsigned k = 2; text.n && intern_find(&seen, buf_view(&text)) != INTERN_NONE; k++) {
			text.n = length;
			buf_printf(&text, " #%u", k);
		}
		if (text.n)
			intern_str(&seen, buf_view(&text));
		out[o->number] = text.n ? arena_str(a, buf_view(&text)) : STR("");
		buf_release(&o->suffix);
	}
	buf_release(&text);
	intern_release(&seen);
}

void kernel_short_names(struct arena *a, const struct str *full, uint32_t n, struct str *out)
{
	struct apart x = {.v = NEW_ARRAY(n, struct one)};
	struct keyed *k = NEW_ARRAY_RAW(n, struct keyed);
	uint32_t *member = NEW_ARRAY_RAW(n, uint32_t);
	short_name_apart_begin(&x, full, n);
	for (uint32_t i = 0; i < n; i++)
		k[i] = (struct keyed){x.v[i].base, x.v[i].full, i};
	qsort(k, n, sizeof *k, compare_keyed);
	for (uint32_t i = 0; i < n; i++)
		member[i] = k[i].member;
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && str_eq(k[to].key, k[from].key); to++)
			;
		if (to - from > 1) {
			find_tokens(&x, member + from, to - from, false);
			tell_apart(&x, member + from, to - from, false, 0);
		}
	}
	short_name_apart_finish(&x, a, member, n, out);
	mem_free(member);
	mem_free(k);
	mem_free(x.v);
	arena_release(&x.arena);
}
