/* The cost model on any facts: bytes split into lines are an op's name, shapes, types, values, names of arguments and a collective,
 * then an expression and a pattern, as a user's rule has them. No result may be negative but for "unknown", none unknown without a reason, none a wrapped sum. */
#include "op/cost_rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cost_rules other_rules = {.bias_is_free = true, .both_gradients = true, .causal_is_half = true, .truth_values = "they have no size"};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static struct str line(struct str *rest)
{
	struct str s = {0};
	return str_split(rest, '\n', &s) ? s : (struct str){0};
}

static void one(const struct op_facts *f, const struct cost_rules *rules, enum cost_direction d)
{
	struct arena a = {0};
	struct cost c;
	cost_of(f, rules, d, NULL, &a, &c);
	check(c.flops >= COST_UNKNOWN && c.bytes >= COST_UNKNOWN && c.wire_bytes >= COST_UNKNOWN && c.flops_causal >= COST_UNKNOWN);
	check((c.flops >= 0 && c.bytes >= 0) || c.why.n > 0);
	check(c.parts >= 1 && c.class >= OP_UNKNOWN && c.class < OP_CLASSES && c.dtype < DTYPES);
	check(c.bytes < 0 || c.bytes_read < 0 || c.bytes == c.bytes_read + c.bytes_written);
	check(!c.causal || c.flops < 0 || rules != &cost_own || c.flops_causal <= c.flops);
	arena_release(&a);
}

/* What the checks of a rule file let through can be run. */
static void own_rule(const struct op_facts *f, const char *pattern, const char *expression)
{
	struct arena a = {0};
	struct cost out = {0};
	struct cost_call c = {.facts = f, .name = f->name, .rules = &cost_own, .arena = &a, .out = &out, .scope = {.call = rule_function, .user = &c}};
	struct rule r = {.pattern = pattern, .flops = expression, .read = expression, .written = expression, .class = OP_GEMM, .parts = 1};
	struct expr_scope sound = {.check = rule_function_check};
	char why[EXPR_WHY] = "";
	if (rule_pattern_check(pattern, &sound.bound, why) == 0 && op_args_parse(&c.args, f, c.why_flops) == 0) {
		rule_run(&r, &c);
		check(expr_check(str_from(expression), &sound, why) == 0 || (out.flops < 0 && c.why_flops[0]) || out.m > 0);
	}
	op_args_release(&c.args);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	if (size)
		memcpy(copy, data, size);
	struct str rest = {copy, size}, n;
	struct op_facts f = {.in_elements = -1, .out_elements = -1, .group_size = -1};
	f.name = line(&rest);
	f.dims = line(&rest);
	f.types = line(&rest);
	f.concrete = line(&rest);
	f.names = line(&rest);
	f.collective = line(&rest);
	n = line(&rest);
	str_to_i64(n, &f.in_elements);
	n = line(&rest);
	str_to_i64(n, &f.group_size);
	for (int d = COST_FORWARD; d < COST_DIRECTIONS; d++) {
		one(&f, &cost_own, (enum cost_direction)d);
		one(&f, &other_rules, (enum cost_direction)d);
	}
	struct expr_scope s = {0};
	char why[EXPR_WHY] = "";
	int64_t v;
	expr_bind(&s, 'm', INT64_MAX);
	expr_bind(&s, 'n', 3);
	check(expr_eval(rest, &s, &v, why) == 0 || *why);
	copy[size] = 0;
	char *expression = (char *)line(&rest).p, *pattern = (char *)line(&rest).p;
	if (pattern) {
		pattern[-1] = 0;
		pattern[strcspn(pattern, "\n")] = 0;
		own_rule(&f, pattern, expression);
	}
	free(copy);
	return 0;
}
