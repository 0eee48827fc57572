/* The rows of rules.def: found by name in constant time, evaluated in checked int64. */
#include "op/user_rules_work.h"

#include "base/hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>

enum table { FORWARD, BACKWARD, TRACELENS_FORWARD, TRACELENS_BACKWARD, TABLES };

#define EXPRESSIONS(class, names, pattern, flops, read, written, parts) {names, pattern, flops, read, written, OP_##class, parts, NULL},
#define FUNCTION(class, names, code) {names, NULL, NULL, NULL, NULL, OP_##class, 1, code},
#define NOTHING(...)

/* Each table from its own rows alone. */
#define RULE(class, names, pattern, flops, read, written) EXPRESSIONS(class, names, pattern, flops, read, written, 1)
#define CODE FUNCTION
#define GRAD NOTHING
#define GRAD_CODE NOTHING
static const struct rule forward_rows[] = {
#include "op/rules.def"
};
static const struct rule tracelens_forward_rows[] = {
#include "op/rules_tracelens.def"
};
#undef RULE
#undef CODE
#undef GRAD
#undef GRAD_CODE
#define RULE NOTHING
#define CODE NOTHING
#define GRAD EXPRESSIONS
#define GRAD_CODE FUNCTION
static const struct rule backward_rows[] = {
#include "op/rules.def"
};
static const struct rule tracelens_backward_rows[] = {
#include "op/rules_tracelens.def"
};

static const struct rows {
	const struct rule *row;
	size_t n;
} tables[TABLES] = {
#define ROWS(list) {list, sizeof(list) / sizeof(list[0])}
	[FORWARD] = ROWS(forward_rows),
	[BACKWARD] = ROWS(backward_rows),
	[TRACELENS_FORWARD] = ROWS(tracelens_forward_rows),
	[TRACELENS_BACKWARD] = ROWS(tracelens_backward_rows),
};

/* Written once, before the first look-up. */
static struct rule_index index_of[TABLES];
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;
static bool built; /* written under it */

static struct rule_slot *slot_of(const struct rule_index *x, struct str name)
{
	uint32_t i = hash_bytes32(name.p, name.n) & x->mask;
	while (x->slot[i].rule && !str_eq(x->slot[i].name, name))
		i = (i + 1) & x->mask;
	return &x->slot[i];
}

size_t rule_index_slots(const struct rule *row, size_t n)
{
	size_t names = n, slots = 64;
	for (size_t i = 0; i < n; i++)
		for (const char *p = row[i].names; *p; p++)
			names += *p == ' ';
	while (slots < 2 * names)
		slots *= 2;
	return slots;
}

void rule_index_enter(struct rule_index *x, const struct rule *row, size_t n)
{
	struct str names, name;
	for (size_t i = 0; i < n; i++) {
		names = str_from(row[i].names);
		while (str_split(&names, ' ', &name)) {
			struct rule_slot *s = slot_of(x, name);
			if (name.n && !s->rule)
				*s = (struct rule_slot){name, &row[i]};
		}
	}
}

static void rules_build(enum table t)
{
	size_t slots = rule_index_slots(tables[t].row, tables[t].n);
	index_of[t] = (struct rule_index){NEW_ARRAY(slots, struct rule_slot), (uint32_t)slots - 1};
	rule_index_enter(&index_of[t], tables[t].row, tables[t].n);
}

static void rules_build_all(void *unused)
{
	for (int t = 0; t < TABLES; t++)
		rules_build((enum table)t);
}

/* They belong to no call that may be abandoned; where there is no memory for them now, the next call builds them. */
static void build_once(void)
{
	struct mem_pool blocks = {0};
	if (__atomic_load_n(&built, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&building);
	int rc = built ? 0 : mem_try(&blocks, rules_build_all, NULL);
	if (rc == 0) {
		mem_pool_drop(&blocks);
		__atomic_store_n(&built, true, __ATOMIC_RELEASE);
	} else {
		mem_pool_release(&blocks);
	}
	pthread_mutex_unlock(&building);
	if (rc < 0)
		mem_fail(0);
}

static const struct rule *exact(struct str name, enum table t, const struct rule_index *user)
{
	const struct rule *r = user->slot ? slot_of(user, name)->rule : NULL;
	return r ? r : slot_of(&index_of[t], name)->rule;
}

/* "aten::add_" is "aten::add" in place, "aten::add.Tensor" an overload, "attention_ragged_100" an op that a profiler numbered;
 * a row of the full name comes first. */
static const struct rule *find_in(struct str name, enum table t, const struct rule_index *user)
{
	const struct rule *r = exact(name, t, user);
	const char *dot = r ? NULL : memchr(name.p, '.', name.n);
	if (dot && !(r = exact((struct str){name.p, (size_t)(dot - name.p)}, t, user)))
		name.n = (size_t)(dot - name.p);
	if (!r && name.n > 1 && name.p[name.n - 1] == '_')
		r = exact((struct str){name.p, name.n - 1}, t, user);
	if (!r && str_starts(name, STR("sglang_profiler::"))) {
		while (name.n && name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9')
			name.n--;
		if (name.n && name.p[name.n - 1] == '_')
			r = exact((struct str){name.p, name.n - 1}, t, user);
	}
	return r;
}

const struct rule *rule_find(struct str name, enum cost_rules rules, enum cost_direction d, const struct user_rules *user)
{
	static const struct rule_index none;
	const struct rule_index *own = user ? &user->cost[d].index : &none;
	build_once();
	if (!name.n)
		return NULL;
	const struct rule *r = NULL;
	if (rules == COST_TRACELENS)
		r = find_in(name, d == COST_BACKWARD ? TRACELENS_BACKWARD : TRACELENS_FORWARD, own);
	return r ? r : find_in(name, d == COST_BACKWARD ? BACKWARD : FORWARD, own);
}

static enum dtype deciding_type(const struct cost_call *c, enum op_class class)
{
	if (class == OP_ELEMENTWISE)
		return rule_result_type(c);
	for (unsigned i = 0; i < c->args.n && i < 64; i++)
		if (c->operands >> i & 1)
			return c->args.arg[i].dtype;
	return DTYPE_UNKNOWN;
}

/* Real operations per operation of the formula: a complex multiply-add is 8 real ones, not 2; an addition 2, not 1. */
static int64_t complex_factor(enum op_class class, enum dtype t)
{
	bool products = class == OP_GEMM || class == OP_CONV || class == OP_ATTENTION || class == OP_RNN || class == OP_FFT;
	if (dtype_kind(t) != DTYPE_KIND_COMPLEX || class == OP_FFT)
		return 1;
	return products ? 4 : 2;
}

static int64_t letter(const struct cost_call *c, char l)
{
	return c->scope.bound >> (l - 'a') & 1 ? c->scope.letter[l - 'a'] : 1;
}

static int eval(struct cost_call *c, const char *text, int64_t *v, char why[EXPR_WHY])
{
	if (expr_eval(str_from(text), &c->scope, v, why) < 0)
		return -1;
	if (*v >= 0)
		return 0;
	snprintf(why, EXPR_WHY, "the formula gives a negative number");
	return -1;
}

static void run_bytes(const struct rule *r, struct cost_call *c)
{
	int64_t read, written;
	char why[EXPR_WHY];
	if (eval(c, r->read, &read, why) < 0 || eval(c, r->written, &written, why) < 0)
		cost_bytes_unknown(c, "%s", why);
	else
		cost_set_bytes(c, read, written, "does not fit 64 bits");
}

static bool is_gemm(const struct rule *r, const struct cost_call *c)
{
	uint32_t mnk = 1u << ('m' - 'a') | 1u << ('n' - 'a') | 1u << ('k' - 'a');
	return r->class == OP_GEMM && (c->scope.bound & mnk) == mnk;
}

void rule_run(const struct rule *r, struct cost_call *c)
{
	struct cost *o = c->out;
	char why[EXPR_WHY];
	int64_t flops;
	o->class = r->class;
	o->parts = r->parts;
	if (r->code) {
		r->code(c);
		return;
	}
	o->formula = str_from(r->flops);
	if (rule_match(c, r->pattern, why) < 0) {
		cost_unknown(c, "%s", why);
		return;
	}
	o->dtype = deciding_type(c, r->class);
	if (is_gemm(r, c))
		cost_set_gemm(c, letter(c, 'b'), letter(c, 'm'), letter(c, 'n'), letter(c, 'k'), o->dtype);
	else
		o->tc_eligible = r->class == OP_ATTENTION ? cost_tc_eligible(o->dtype) : TRI_NO;
	o->class = r->class;
	if (eval(c, r->flops, &flops, c->why_flops) < 0)
		o->flops = COST_UNKNOWN;
	else
		cost_set_flops(c, cost_mul(flops, complex_factor(r->class, o->dtype)));
	run_bytes(r, c);
}
