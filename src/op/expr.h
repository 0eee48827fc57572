/* The expressions of rules.def, in checked int64: no result is ever a wrapped or rounded one.
 *
 *   sum:     product { (+ | -) product }        product: power { (* | /) power }     / rounds down, by zero is an error
 *   power:   unary [ ^ power ]                  unary:   [-] (number | letter | name | name(sum, ...) | (sum))
 *
 * Built in: max(a,b,...), min(a,b,...), ceil(a,b) = a / b rounded up, log2(a) = the smallest n with 2^n >= a. A letter is a
 * dimension that the rule's pattern has bound; all other names are the scope's own. */
#ifndef OPSCOPE_OP_EXPR_H
#define OPSCOPE_OP_EXPR_H

#include "base/str.h"

enum { EXPR_ARGS = 8, EXPR_WHY = 160 };

struct expr_scope {
	int64_t letter[26];
	uint32_t bound;  /* bit i: letter 'a' + i has a value */
	/* A function, or with n = 0 a constant. 0 and *out, or -1 with the reason in why. */
	int (*call)(void *user, struct str name, const int64_t *args, unsigned n, int64_t *out, char why[EXPR_WHY]);
	void *user;
	/* For expr_check: whether there is such a function. 0, or -1 with the reason. */
	int (*check)(struct str name, unsigned n, char why[EXPR_WHY]);
};

/* 0, or -1 with the reason: overflow, division by zero, an unknown name, a syntax error. */
int expr_eval(struct str text, const struct expr_scope *s, int64_t *v, char why[EXPR_WHY]);

/* Whether an expression is sound, without its value: only s->bound and s->check are used. 0, or -1 with the reason. */
int expr_check(struct str text, const struct expr_scope *s, char why[EXPR_WHY]);

static inline void expr_bind(struct expr_scope *s, char letter, int64_t v)
{
	s->letter[letter - 'a'] = v;
	s->bound |= 1u << (letter - 'a');
}

#endif
