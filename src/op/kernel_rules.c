/* Rules of the user's own, one row a line, in the form of kernels.def: KERNEL(...). */
#include "op/rule_file.h"
#include "op/user_rules_work.h"

#include <stdio.h>

static const char *const class_ids[] = {
#define CLASS_ID(id, name) [KERNEL_##id] = #id,
	KERNEL_CLASSES(CLASS_ID)
};

static const char *const tc_ids[] = {
	[TC_NO] = "NO", [TC_YES] = "YES", [TC_UNKNOWN] = "UNKNOWN", [TC_UNKNOWN_BY_MMA] = "UNKNOWN_BY_MMA",
	[TC_UNKNOWN_BY_DOT] = "UNKNOWN_BY_DOT",
};

static int find_class(const char *id, enum kernel_class *class)
{
	for (size_t i = 0; i < sizeof class_ids / sizeof class_ids[0]; i++)
		if (strcmp(class_ids[i], id) == 0) {
			*class = (enum kernel_class)i;
			return 0;
		}
	return -1;
}

static int find_rule(const char *id, enum tc_rule *rule)
{
	for (size_t i = 0; i < sizeof tc_ids / sizeof tc_ids[0]; i++)
		if (strcmp(tc_ids[i], id) == 0) {
			*rule = (enum tc_rule)i;
			return 0;
		}
	return -1;
}

/* A pattern finds something: it has a substring between its signs. */
static bool sound_pattern(const char *p)
{
	return p[strspn(p + (*p == '^'), "*") + (*p == '^')] != 0;
}

static int kernel_rules_add_row(void *rules, const char *line, struct err *e)
{
	struct user_rules *u = rules;
	char pattern[256], class[32], rule[32];
	int end = 0;
	struct kernel_row row = {0};
	if (sscanf(line, "KERNEL ( \"%255[^\"]\" , %31[A-Z_] , %31[A-Z_] )%n", pattern, class, rule, &end) != 3 || !end ||
	    !rule_line_ends(line + end))
		return err_set(e, ERR_FORMAT, "KERNEL(\"part of a name\", CLASS, YES, NO or UNKNOWN) was expected");
	if (!sound_pattern(pattern))
		return err_set(e, ERR_FORMAT, "\"%s\" is in every name; part of a name was expected", pattern);
	if (find_class(class, &row.class) < 0)
		return err_set(e, ERR_FORMAT, "no class %s; GEMM, CONV, ATTENTION, ELEMENTWISE, OTHER, ... (src/op/kernels.h) were expected", class);
	if (find_rule(rule, &row.rule) < 0)
		return err_set(e, ERR_FORMAT, "%s: YES, NO, UNKNOWN, UNKNOWN_BY_MMA or UNKNOWN_BY_DOT was expected", rule);
	row.pattern = arena_str(u->arena, str_from(pattern)).p;
	u->kernel = user_rules_grow(u->arena, u->kernel, u->n_kernels, sizeof *u->kernel);
	u->kernel[u->n_kernels++] = row;
	return 0;
}

int user_rules_add_kernels(struct user_rules *u, const char *path, struct err *e)
{
	return rule_file_read(path, kernel_rules_add_row, u, e);
}
