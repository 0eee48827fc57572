#include "op/cost_rules.h"

#include <string.h>

const struct cost_rules cost_own = {0};

static void cost_explain(struct cost_call *c)
{
	struct cost *o = c->out;
	const char *f = o->flops < 0 ? c->why_flops : "", *b = o->bytes < 0 ? c->why_bytes : "";
	if (*f && *b && strcmp(f, b) != 0)
		o->why = arena_printf(c->arena, "FLOPs: %s; bytes: %s", f, b);
	else if (*f && *b)
		o->why = arena_printf(c->arena, "%s", f);
	else if (*f || *b)
		o->why = arena_printf(c->arena, "%s: %s", *f ? "FLOPs" : "bytes", *f ? f : b);
}

static void cost_run(struct cost_call *c)
{
	if (op_args_parse(&c->args, c->facts, c->why_flops) < 0) {
		cost_unknown(c, "malformed arguments: %s", arena_printf(c->arena, "%s", c->why_flops).p);
		return;
	}
	bool marker = marker_to_op(c);
	const struct rule *r = rule_find(c->name, c->rules, c->direction, c->user);
	if (!r && c->direction == COST_BACKWARD) {
		/* Where nothing else is said, a product's gradients are two products of the same size. */
		r = rule_find(c->name, c->rules, COST_FORWARD, c->user);
		if (r && r->class == OP_GEMM) {
			rule_run(r, c);
			cost_double(c);
			return;
		}
		if (r)
			c->out->class = r->class;
		cost_unknown(c, r ? "no model of this op's backward" : "no model of this op");
		return;
	}
	if (!r) {
		cost_unknown(c, marker ? "no model of this function" : "no model of this op");
		return;
	}
	rule_run(r, c);
}

enum cost_asks cost_asks(struct str op_name, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user)
{
	const struct rule *r = rule_find(op_name, rules, d, user);
	const char *const text[] = {r ? r->flops : NULL, r ? r->read : NULL, r ? r->written : NULL};
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		if (text[i] && str_has(str_from(text[i]), STR("batch_")))
			return COST_ASKS_BATCH;
	return r && r->code == cost_moe_inner ? COST_ASKS_INNER : COST_ASKS_NOTHING;
}

void cost_of(const struct op_facts *f, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user, struct arena *a, struct cost *out)
{
	*out = (struct cost){
		.flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .bytes_read = COST_UNKNOWN, .bytes_written = COST_UNKNOWN, .bytes_least = COST_UNKNOWN,
		.wire_bytes = COST_UNKNOWN, .message_bytes = COST_UNKNOWN, .flops_causal = COST_UNKNOWN, .parts = 1, .tc_eligible = TRI_UNKNOWN,
	};
	struct cost_call c = {.facts = f, .name = f->name, .rules = rules, .direction = d, .user = user, .arena = a, .out = out};
	c.scope.call = rule_function;
	c.scope.user = &c;
	cost_run(&c);
	if (!out->params.p && c.args.n)
		out->params = cost_operands_text(&c);
	if (!out->uneven || out->bytes < 0)
		out->bytes_least = out->bytes;
	cost_explain(&c);
	op_args_release(&c.args);
}
