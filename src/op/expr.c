#include "op/expr.h"

#include <stdio.h>

enum { MAX_DEPTH = 64 };

struct expr_parser {
	const char *p, *end;
	const struct expr_scope *scope;
	unsigned depth;
	bool check; /* no value counts: nothing is computed */
	char *why;
};

static int expr_sum(struct expr_parser *x, int64_t *v);

static int expr_fail(struct expr_parser *x, const char *what)
{
	snprintf(x->why, EXPR_WHY, "%s", what);
	return -1;
}

static int overflow(struct expr_parser *x)
{
	return expr_fail(x, "does not fit 64 bits");
}

static char peek(struct expr_parser *x)
{
	while (x->p < x->end && *x->p == ' ')
		x->p++;
	return x->p < x->end ? *x->p : 0;
}

static bool expr_take(struct expr_parser *x, char c)
{
	if (peek(x) != c)
		return false;
	x->p++;
	return true;
}

static bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

static int expr_number(struct expr_parser *x, int64_t *v)
{
	const char *from = x->p;
	while (x->p < x->end && is_digit(*x->p))
		x->p++;
	return str_to_i64((struct str){from, (size_t)(x->p - from)}, v) ? 0 : overflow(x);
}

static int ceil_div(struct expr_parser *x, int64_t a, int64_t b, int64_t *v)
{
	if (b == 0 || (b == -1 && a == INT64_MIN))
		return expr_fail(x, "division by zero");
	*v = a / b + (a % b != 0 && (a < 0) == (b < 0));
	return 0;
}

static int log2_ceil(struct expr_parser *x, int64_t a, int64_t *v)
{
	if (a < 1)
		return expr_fail(x, "log2 of a number below 1");
	for (*v = 0; *v < 62 && ((int64_t)1 << *v) < a;)
		++*v;
	*v += *v == 62 && a > (int64_t)1 << 62;
	return 0;
}

static int built_in(struct expr_parser *x, struct str name, const int64_t *a, unsigned n, int64_t *v)
{
	bool max = str_eqc(name, "max"), min = str_eqc(name, "min");
	bool own = (n && (max || min)) || (n == 2 && str_eqc(name, "ceil")) || (n == 1 && str_eqc(name, "log2"));
	*v = 0;
	if (x->check)
		return own ? 0 : x->scope->check(name, n, x->why);
	if (n && (max || min)) {
		*v = a[0];
		for (unsigned i = 1; i < n; i++)
			*v = max ? (a[i] > *v ? a[i] : *v) : (a[i] < *v ? a[i] : *v);
		return 0;
	}
	if (n == 2 && str_eqc(name, "ceil"))
		return ceil_div(x, a[0], a[1], v);
	if (n == 1 && str_eqc(name, "log2"))
		return log2_ceil(x, a[0], v);
	if (x->scope->call)
		return x->scope->call(x->scope->user, name, a, n, v, x->why);
	return expr_fail(x, "no such function");
}

static int name(struct expr_parser *x, int64_t *v)
{
	struct str word = {x->p, 0};
	while (x->p < x->end && is_name(*x->p))
		x->p++, word.n++;
	int64_t args[EXPR_ARGS];
	unsigned n = 0;
	if (expr_take(x, '(')) {
		do {
			if (n == EXPR_ARGS)
				return expr_fail(x, "too many arguments");
			if (expr_sum(x, &args[n++]) < 0)
				return -1;
		} while (expr_take(x, ','));
		if (!expr_take(x, ')'))
			return expr_fail(x, "')' expected");
	} else if (word.n == 1 && *word.p >= 'a' && *word.p <= 'z') {
		unsigned i = (unsigned)(*word.p - 'a');
		if (!(x->scope->bound >> i & 1)) {
			snprintf(x->why, EXPR_WHY, "no operand says what '%c' is", *word.p);
			return -1;
		}
		*v = x->check ? 0 : x->scope->letter[i];
		return 0;
	}
	return built_in(x, word, args, n, v);
}

static int unary(struct expr_parser *x, int64_t *v)
{
	if (x->depth++ > MAX_DEPTH)
		return expr_fail(x, "nested too deep");
	char c = peek(x);
	int rc;
	if (expr_take(x, '-')) {
		rc = unary(x, v);
		if (rc == 0 && !x->check && __builtin_sub_overflow((int64_t)0, *v, v))
			rc = overflow(x);
	} else if (expr_take(x, '(')) {
		rc = expr_sum(x, v);
		if (rc == 0 && !expr_take(x, ')'))
			rc = expr_fail(x, "')' expected");
	} else if (is_digit(c)) {
		rc = expr_number(x, v);
	} else if (is_name(c)) {
		rc = name(x, v);
	} else {
		rc = expr_fail(x, "a number or a name expected");
	}
	x->depth--;
	return rc;
}

static int power(struct expr_parser *x, int64_t *v)
{
	int64_t exponent, base;
	if (unary(x, &base) < 0)
		return -1;
	*v = base;
	if (!expr_take(x, '^'))
		return 0;
	if (x->depth++ > MAX_DEPTH)
		return expr_fail(x, "nested too deep");
	if (power(x, &exponent) < 0)
		return -1;
	x->depth--;
	if (x->check)
		return 0;
	if (exponent < 0 || exponent > 64)
		return expr_fail(x, "the exponent is not in 0..64");
	for (*v = 1; exponent > 0; exponent--)
		if (__builtin_mul_overflow(*v, base, v))
			return overflow(x);
	return 0;
}

static int floor_div(struct expr_parser *x, int64_t a, int64_t b, int64_t *v)
{
	if (b == 0 || (b == -1 && a == INT64_MIN))
		return expr_fail(x, "division by zero");
	*v = a / b - (a % b != 0 && (a < 0) != (b < 0));
	return 0;
}

static int expr_product(struct expr_parser *x, int64_t *v)
{
	if (power(x, v) < 0)
		return -1;
	for (char c; (c = peek(x)) == '*' || c == '/';) {
		int64_t b;
		x->p++;
		if (power(x, &b) < 0)
			return -1;
		if (x->check)
			continue;
		if (c == '*' ? __builtin_mul_overflow(*v, b, v) : floor_div(x, *v, b, v))
			return c == '*' ? overflow(x) : -1;
	}
	return 0;
}

static int expr_sum(struct expr_parser *x, int64_t *v)
{
	if (expr_product(x, v) < 0)
		return -1;
	for (char c; (c = peek(x)) == '+' || c == '-';) {
		int64_t b;
		x->p++;
		if (expr_product(x, &b) < 0)
			return -1;
		if (x->check)
			continue;
		if (c == '+' ? __builtin_add_overflow(*v, b, v) : __builtin_sub_overflow(*v, b, v))
			return overflow(x);
	}
	return 0;
}

static int expr_run(struct str text, const struct expr_scope *s, bool check, int64_t *v, char why[EXPR_WHY])
{
	struct expr_parser x = {text.p, text.p ? text.p + text.n : NULL, s, 0, check, why};
	if (expr_sum(&x, v) < 0)
		return -1;
	return x.p < x.end ? expr_fail(&x, "an operator expected") : 0;
}

int expr_eval(struct str text, const struct expr_scope *s, int64_t *v, char why[EXPR_WHY])
{
	return expr_run(text, s, false, v, why);
}

int expr_check(struct str text, const struct expr_scope *s, char why[EXPR_WHY])
{
	int64_t v = 0;
	return expr_run(text, s, true, &v, why);
}
