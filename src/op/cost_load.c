/* Rules of the user's own, one row a line, in the form of rules.def: RULE(...) and GRAD(...). */
#include "op/rule_file.h"
#include "op/user_rules_work.h"

#include <stdlib.h>
#include <strings.h>

static void cost_load_skip(const char **p)
{
	while (**p == ' ' || **p == '\t')
		++*p;
}

/* The next "text" and the comma before it; NULL when it is not there. */
static const char *cost_load_take_text(const char **p, struct arena *a)
{
	cost_load_skip(p);
	if (**p != ',')
		return NULL;
	++*p;
	cost_load_skip(p);
	const char *from = *p + 1, *end = **p == '"' ? strchr(from, '"') : NULL;
	if (!end)
		return NULL;
	*p = end + 1;
	return arena_str(a, (struct str){from, (size_t)(end - from)}).p;
}

static bool take_class(const char **p, enum op_class *class)
{
	size_t n = strspn(*p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	*class = n == 4 && strncmp(*p, "COMM", 4) == 0 ? OP_COMM : OP_UNKNOWN; /* the one whose id is not its name */
	for (int i = OP_UNKNOWN + 1; i < OP_CLASSES && *class == OP_UNKNOWN; i++)
		if (strlen(op_class_name[i]) == n && strncasecmp(op_class_name[i], *p, n) == 0)
			*class = (enum op_class)i;
	*p += n;
	return *class != OP_UNKNOWN;
}

/* The next number and the comma before it; -1 when it is not there. */
static int take_count(const char **p)
{
	cost_load_skip(p);
	if (**p != ',')
		return -1;
	++*p;
	cost_load_skip(p);
	if (**p < '0' || **p > '9')
		return -1;
	char *end;
	unsigned long v = strtoul(*p, &end, 10);
	*p = end;
	return v <= 100 ? (int)v : -1;
}

static int parse_row(const char *p, bool backward, struct arena *a, struct rule *r, struct err *e)
{
	const char **text[] = {&r->names, &r->pattern, &r->flops, &r->read, &r->written};
	cost_load_skip(&p);
	if (!take_class(&p, &r->class))
		return err_set(e, ERR_FORMAT, "a class was expected: GEMM, CONV, ATTENTION, ELEMENTWISE, OTHER, ... (src/op/cost.h)");
	bool ok = true;
	for (int i = 0; i < 5 && ok; i++)
		ok = (*text[i] = cost_load_take_text(&p, a)) != NULL;
	r->parts = ok && backward ? take_count(&p) : 1;
	cost_load_skip(&p);
	if (ok && r->parts >= 1 && *p == ')' && rule_line_ends(p + 1))
		return 0;
	return err_set(e, ERR_FORMAT, "RULE(CLASS, \"names\", \"pattern\", \"FLOPs\", \"bytes read\", \"bytes written\") or "
	                              "GRAD(CLASS, the same, parts) was expected");
}

/* All that can be known without a call: letters that nothing binds, unknown functions, signs in the wrong place. */
static int check_row(const struct rule *r, struct err *e)
{
	struct expr_scope s = {.check = rule_function_check};
	char why[EXPR_WHY];
	if (!r->names[strspn(r->names, " ")])
		return err_set(e, ERR_FORMAT, "no name; the ops that the rule is for were expected");
	if (rule_pattern_check(r->pattern, &s.bound, why) < 0)
		return err_set(e, ERR_FORMAT, "the pattern \"%.100s\": %s", r->pattern, why);
	const char *const expressions[] = {r->flops, r->read, r->written};
	for (int i = 0; i < 3; i++)
		if (expr_check(str_from(expressions[i]), &s, why) < 0)
			return err_set(e, ERR_FORMAT, "the expression \"%.100s\": %s", expressions[i], why);
	return 0;
}

static int cost_load_add_row(void *rules, const char *line, struct err *e)
{
	struct user_rules *u = rules;
	bool backward = strncmp(line, "GRAD(", 5) == 0;
	struct user_costs *x = &u->cost[backward ? COST_BACKWARD : COST_FORWARD];
	struct rule r = {0};
	if (!backward && strncmp(line, "RULE(", 5) != 0)
		return err_set(e, ERR_FORMAT, "RULE(...) or GRAD(...) was expected");
	if (parse_row(line + 5, backward, u->arena, &r, e) < 0 || check_row(&r, e) < 0)
		return -1;
	x->v = user_rules_grow(u->arena, x->v, x->n, sizeof *x->v);
	x->v[x->n++] = r;
	return 0;
}

int user_rules_add_costs(struct user_rules *u, const char *path, struct err *e)
{
	int rc = rule_file_read(path, cost_load_add_row, u, e);
	for (int d = COST_FORWARD; d <= COST_BACKWARD; d++) {
		struct user_costs *x = &u->cost[d];
		size_t slots = rule_index_slots(x->v, x->n);
		x->index = (struct rule_index){ARENA_ARRAY(u->arena, slots, struct rule_slot), (uint32_t)slots - 1};
		rule_index_enter(&x->index, x->v, x->n);
	}
	return rc;
}
