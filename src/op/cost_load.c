/* Rules of the user's own, one row a line, in the form of rules.def: RULE(...) and GRAD(...). */
#include "op/cost_call.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Of the whole process: set once, before the first cost. */
static struct {
	struct rule *v;
	size_t n, cap;
} user[2];

const struct rule *rule_user_rows(enum cost_direction d, size_t *n)
{
	*n = user[d].n;
	return user[d].v;
}

static void skip(const char **p)
{
	while (**p == ' ' || **p == '\t')
		++*p;
}

/* The next "text" and the comma before it, on the heap; NULL when it is not there. */
static char *take_text(const char **p)
{
	skip(p);
	if (**p != ',')
		return NULL;
	++*p;
	skip(p);
	const char *from = *p + 1, *end = **p == '"' ? strchr(from, '"') : NULL;
	if (!end)
		return NULL;
	*p = end + 1;
	size_t n = (size_t)(end - from);
	char *copy = NEW_ARRAY(n + 1, char);
	memcpy(copy, from, n);
	return copy;
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

/* A pattern is tried on nothing, so that its letters and signs are known to be sound. */
static bool sound_pattern(const char *p)
{
	return p[strspn(p, "abcdefghijklmnopqrstuvwxyz()#?*.,")] == 0;
}

static int parse_row(const char *p, bool backward, struct rule *r, struct err *e)
{
	static const char *const form = "RULE(CLASS, \"names\", \"pattern\", \"FLOPs\", \"bytes read\", \"bytes written\") or "
	                                "GRAD(CLASS, the same, parts) was expected";
	char *text[5] = {0};
	bool ok;
	skip(&p);
	ok = take_class(&p, &r->class);
	if (!ok)
		return err_set(e, ERR_FORMAT, "a class was expected: GEMM, CONV, ATTENTION, ELEMENTWISE, OTHER, ... (src/op/cost.h)");
	for (int i = 0; i < 5 && ok; i++)
		ok = (text[i] = take_text(&p)) != NULL;
	r->parts = 1;
	skip(&p);
	if (ok && backward)
		ok = sscanf(p, ", %d", &r->parts) == 1 && r->parts >= 1 && r->parts <= 100 && (p = strchr(p, ')'));
	if (!ok || *p != ')' || !sound_pattern(text[1])) {
		for (int i = 0; i < 5; i++)
			mem_free(text[i]);
		return err_set(e, ERR_FORMAT, "%s", form);
	}
	r->names = text[0], r->pattern = text[1], r->flops = text[2], r->read = text[3], r->written = text[4];
	return 0;
}

/* 1: a row, into *r and *d; 0: a blank line or a comment; -1: *e without its place. */
static int parse_line(const char *line, struct rule *r, enum cost_direction *d, struct err *e)
{
	line += strspn(line, " \t\r\n");
	if (!*line || *line == '#' || *line == '*' || (line[0] == '/' && (line[1] == '*' || line[1] == '/')))
		return 0;
	bool backward = strncmp(line, "GRAD(", 5) == 0;
	if (!backward && strncmp(line, "RULE(", 5) != 0)
		return err_set(e, ERR_FORMAT, "RULE(...) or GRAD(...) was expected");
	*d = backward ? COST_BACKWARD : COST_FORWARD;
	return parse_row(line + 5, backward, r, e) < 0 ? -1 : 1;
}

int cost_load_rules(const char *path, struct err *e)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;
	for (unsigned number = 1; rc == 0 && getline(&line, &cap, f) > 0; number++) {
		struct rule r = {0};
		enum cost_direction d = COST_FORWARD;
		struct err why = {0};
		int got = parse_line(line, &r, &d, &why);
		if (got < 0) {
			rc = err_set(e, ERR_FORMAT, "%s:%u: %s", path, number, why.msg);
		} else if (got > 0) {
			MEM_GROW(user[d].v, user[d].cap, user[d].n + 1);
			user[d].v[user[d].n++] = r;
		}
	}
	free(line);
	fclose(f);
	return rc;
}
