/* The rows of rules.def: found by name in constant time, evaluated in checked int64. */
#include "op/cost_rules.h"
#include "op/user_rules_work.h"

#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>

/* Each table from its own rows alone. */
#define RULE(class, names, pattern, flops, read, written) RULE_OF_EXPRESSIONS(class, names, pattern, flops, read, written, 1)
#define CODE RULE_OF_CODE
#define GRAD RULE_OF_NOTHING
#define GRAD_CODE RULE_OF_NOTHING
static const struct rule rules_forward[] = {
#include "op/rules.def"
};
#undef RULE
#undef CODE
#undef GRAD
#undef GRAD_CODE
#define RULE RULE_OF_NOTHING
#define CODE RULE_OF_NOTHING
#define GRAD RULE_OF_EXPRESSIONS
#define GRAD_CODE RULE_OF_CODE
static const struct rule rules_backward[] = {
#include "op/rules.def"
};

static struct rule_set rules_own = {.of = {[COST_FORWARD] = RULE_ROWS(rules_forward), [COST_BACKWARD] = RULE_ROWS(rules_backward)}};

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

struct rules_build {
	const struct rule_set *set;
	struct rule_index *made;
};

static void rules_build(void *build)
{
	struct rules_build *b = build;
	b->made = NEW_ARRAY(COST_DIRECTIONS, struct rule_index);
	for (int d = 0; d < COST_DIRECTIONS; d++) {
		const struct rule_rows *r = &b->set->of[d];
		const size_t slots = rule_index_slots(r->row, r->n);
		b->made[d] = (struct rule_index){NEW_ARRAY(slots, struct rule_slot), (uint32_t)slots - 1};
		rule_index_enter(&b->made[d], r->row, r->n);
	}
}

/* The index of a set. Of several threads that make it at once, one keeps its own and the others free theirs: there is no lock that another thread could hold while
 * the process forks. It belongs to no call that may be abandoned; where there is no memory for it now, the next call makes it. */
static const struct rule_index *rules_index_of(struct rule_set *s)
{
	const struct rule_index *index = __atomic_load_n(&s->index, __ATOMIC_ACQUIRE);
	struct rules_build b = {.set = s};
	struct mem_pool blocks = {0};
	if (index)
		return index;
	if (mem_try(&blocks, rules_build, &b) < 0) {
		mem_pool_release(&blocks);
		mem_fail(0);
	}
	if (__atomic_compare_exchange_n(&s->index, &index, b.made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		mem_pool_drop(&blocks);
		return b.made;
	}
	mem_pool_release(&blocks);
	return index;
}

static const struct rule *exact(struct str name, const struct rule_index *built_in, const struct rule_index *user)
{
	const struct rule *r = user->slot ? slot_of(user, name)->rule : NULL;
	return r ? r : slot_of(built_in, name)->rule;
}

/* "aten::add_" is "aten::add" in place, "aten::add.Tensor" an overload, "attention_ragged_100" an op that a profiler numbered;
 * a row of the full name comes first. */
static const struct rule *find_in(struct str name, const struct rule_index *built_in, const struct rule_index *user)
{
	const struct rule *r = exact(name, built_in, user);
	const char *dot = r ? NULL : memchr(name.p, '.', name.n);
	if (dot && !(r = exact((struct str){name.p, (size_t)(dot - name.p)}, built_in, user)))
		name.n = (size_t)(dot - name.p);
	if (!r && name.n > 1 && name.p[name.n - 1] == '_')
		r = exact((struct str){name.p, name.n - 1}, built_in, user);
	if (!r && str_starts(name, STR("sglang_profiler::"))) {
		while (name.n && name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9')
			name.n--;
		if (name.n && name.p[name.n - 1] == '_')
			r = exact((struct str){name.p, name.n - 1}, built_in, user);
	}
	return r;
}

const struct rule *rule_find(struct str name, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user)
{
	static const struct rule_index none;
	const struct rule_index *own = user ? &user->cost[d].index : &none;
	const struct rule *r = NULL;
	const struct rule_index *index = rules_index_of(&rules_own);
	if (!name.n)
		return NULL;
	if (rules->rows)
		r = find_in(name, &rules_index_of(rules->rows)[d], own);
	return r ? r : find_in(name, &index[d], own);
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
