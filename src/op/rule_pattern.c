/* Operand patterns of rules.def. */
#include "op/cost_call.h"

#include <stdio.h>

static int rule_pattern_fail(char why[EXPR_WHY], const char *fmt, long long i)
{
	snprintf(why, EXPR_WHY, fmt, i);
	return -1;
}

static bool rule_pattern_is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_sign(struct str p)
{
	return p.n == 1 && strchr("#?*.", p.p[0]) != NULL;
}

/* One operand: a sign, or letters of which one may stand in brackets. */
static int check_one(struct str p, uint32_t *bound, char why[EXPR_WHY])
{
	unsigned brackets = 0;
	if (is_sign(p))
		return 0;
	for (size_t at = 0; at < p.n; at++) {
		bool open = p.p[at] == '(';
		if (open && (++brackets > 1 || p.n - at < 3 || p.p[at + 2] != ')'))
			return rule_pattern_fail(why, "one letter in brackets at most was expected", 0);
		at += open;
		if (!rule_pattern_is_letter(p.p[at]))
			return rule_pattern_fail(why, "letters from a to z, or one of # ? * . by itself, were expected for each operand", 0);
		*bound |= 1u << (p.p[at] - 'a');
		at += open;
	}
	return p.n ? 0 : rule_pattern_fail(why, "nothing stands for an operand; . does for whatever", 0);
}

int rule_pattern_check(const char *pattern, uint32_t *bound, char why[EXPR_WHY])
{
	struct str rest = str_from(pattern), p;
	*bound = 0;
	if (rest.n && rest.p[rest.n - 1] == ',')
		return rule_pattern_fail(why, "nothing stands behind the last comma", 0);
	while (rest.n && str_split(&rest, ',', &p))
		if (check_one(p, bound, why) < 0)
			return -1;
	return 0;
}

/* One letter of a pattern and the size that it stands for. */
static int bind(struct cost_call *c, char letter, int64_t size, unsigned i, char why[EXPR_WHY])
{
	struct expr_scope *s = &c->scope;
	if ((s->bound >> (letter - 'a') & 1) && s->letter[letter - 'a'] != size) {
		snprintf(why, EXPR_WHY, "%c is %lld in input %u and %lld in another", letter, (long long)size, i,
		         (long long)s->letter[letter - 'a']);
		return -1;
	}
	expr_bind(s, letter, size);
	return 0;
}

/* "mk", or "(m)k" where m is the product of all dimensions that no other letter takes. */
static int match_dims(struct cost_call *c, struct str p, unsigned i, char why[EXPR_WHY])
{
	const struct op_tensor *t = op_arg_tensor(&c->args, i);
	bool any = memchr(p.p, '(', p.n) != NULL;
	uint32_t letters = (uint32_t)p.n - (any ? 2 : 0), fixed = letters - any, k = 0;
	if (!t)
		return rule_pattern_fail(why, "the shape of input %lld was not recorded", i);
	if (any ? t->rank < fixed : t->rank != letters) {
		snprintf(why, EXPR_WHY, "input %u has %u dimensions, %s%u expected", i, t->rank, any ? "at least " : "", fixed);
		return -1;
	}
	for (size_t at = 0; at < p.n; at++) {
		if (p.p[at] == ')')
			continue;
		if (p.p[at] != '(') {
			if (bind(c, p.p[at], op_dims(&c->args, t)[k++], i, why) < 0)
				return -1;
			continue;
		}
		int64_t product = 1;
		for (uint32_t left = t->rank - fixed; left; left--)
			if (__builtin_mul_overflow(product, op_dims(&c->args, t)[k++], &product))
				return rule_pattern_fail(why, "the elements of input %lld do not fit 64 bits", i);
		if (bind(c, p.p[++at], product, i, why) < 0)
			return -1;
	}
	return 0;
}

static int match_one(struct cost_call *c, struct str p, unsigned i, char why[EXPR_WHY])
{
	const struct op_arg *x = op_arg(&c->args, i);
	if (str_eqc(p, "."))
		return 0;
	if (x->kind == OP_ARG_HIDDEN)
		return rule_pattern_fail(why, "the shapes of the list in input %lld were not recorded", i);
	if (str_eqc(p, "?") && x->kind == OP_ARG_NONE)
		return 0;
	if (str_eqc(p, "*") ? x->kind == OP_ARG_NONE : x->kind != OP_ARG_TENSOR)
		return c->args.has_dims ? rule_pattern_fail(why, "input %lld is not recorded as a tensor", i) : rule_pattern_fail(why, "no shapes were recorded", 0);
	if (!is_sign(p) && match_dims(c, p, i, why) < 0)
		return -1;
	if (i < 64)
		c->operands |= 1ull << i;
	return 0;
}

int rule_match(struct cost_call *c, const char *pattern, char why[EXPR_WHY])
{
	struct str rest = str_from(pattern), p;
	bool optional = false;
	for (unsigned i = 0; rest.n && str_split(&rest, ',', &p); i++) {
		if (match_one(c, p, i, why) < 0)
			return -1;
		optional |= str_eqc(p, "?");
	}
	/* Where each may be a number, one has to be a tensor. */
	if (optional && !c->operands)
		return rule_pattern_fail(why, c->args.has_dims ? "no input is recorded as a tensor" : "no shapes were recorded", 0);
	return 0;
}
