#include "op/kernel_rules.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const class_ids[] = {
#define CLASS_ID(id, name) [KERNEL_##id] = #id,
	KERNEL_CLASSES(CLASS_ID)
};

static const char *const tc_ids[] = {
	[TC_NO] = "NO", [TC_YES] = "YES", [TC_UNKNOWN] = "UNKNOWN", [TC_UNKNOWN_BY_MMA] = "UNKNOWN_BY_MMA",
	[TC_UNKNOWN_BY_DOT] = "UNKNOWN_BY_DOT",
};

/* Of the whole process: set once, before kernels are classified. */
static struct {
	struct kernel_row *v;
	size_t n, cap;
} user;

const struct kernel_row *kernel_user_rows(size_t *n)
{
	*n = user.n;
	return user.v;
}

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

/* A row into *row, whose pattern is then on the heap: 1; a blank line or a comment: 0; anything else: -1, *e without its place. */
static int parse_line(const char *line, struct kernel_row *row, struct err *e)
{
	char pattern[256], class[32], rule[32], close;
	line += strspn(line, " \t\r\n");
	if (!*line || *line == '#' || *line == '*' || (line[0] == '/' && (line[1] == '*' || line[1] == '/')))
		return 0;
	if (sscanf(line, "KERNEL ( \"%255[^\"]\" , %31[A-Z_] , %31[A-Z_] %c", pattern, class, rule, &close) != 4 || close != ')')
		return err_set(e, ERR_FORMAT, "KERNEL(\"part of a name\", CLASS, YES, NO or UNKNOWN) was expected");
	if (find_class(class, &row->class) < 0)
		return err_set(e, ERR_FORMAT, "no class %s; GEMM, CONV, ATTENTION, ELEMENTWISE, OTHER, ... (src/op/kernels.h) were expected", class);
	if (find_rule(rule, &row->rule) < 0)
		return err_set(e, ERR_FORMAT, "%s: YES, NO, UNKNOWN, UNKNOWN_BY_MMA or UNKNOWN_BY_DOT was expected", rule);
	size_t n = strlen(pattern) + 1;
	row->pattern = memcpy(NEW_ARRAY_RAW(n, char), pattern, n);
	return 1;
}

int kernel_load_rules(const char *path, struct err *e)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;
	for (unsigned number = 1; rc == 0 && getline(&line, &cap, f) > 0; number++) {
		struct kernel_row row;
		struct err why = {0};
		int got = parse_line(line, &row, &why);
		if (got < 0) {
			rc = err_set(e, ERR_FORMAT, "%s:%u: %s", path, number, why.msg);
		} else if (got > 0) {
			MEM_GROW(user.v, user.cap, user.n + 1);
			user.v[user.n++] = row;
		}
	}
	free(line);
	fclose(f);
	return rc;
}
