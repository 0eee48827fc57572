#include "op/rule_file.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>

static bool is_comment(const char *p)
{
	return !*p || *p == '#' || *p == '*' || (p[0] == '/' && (p[1] == '*' || p[1] == '/'));
}

bool rule_line_ends(const char *p)
{
	return is_comment(p + strspn(p, " \t\r"));
}

/* `line` may be written to where it ends. */
static int one_line(char *line, size_t n, int (*row)(void *context, const char *line, struct err *e), void *context, struct err *e)
{
	if (memchr(line, 0, n))
		return err_set(e, ERR_FORMAT, "a zero byte; lines of text were expected");
	if (n > RULE_LINE_BYTES)
		return err_set(e, ERR_LIMIT, "a line of more than %d bytes; a rule was expected", RULE_LINE_BYTES);
	line[n] = 0;
	line += strspn(line, " \t\r");
	return is_comment(line) ? 0 : row(context, line, e);
}

int rule_file_read(const char *path, int (*row)(void *context, const char *line, struct err *e), void *context, struct err *e)
{
	struct buf b = {0};
	int rc = file_read_all(path, RULE_FILE_BYTES, &b, e);
	buf_char(&b, '\n');
	size_t at = 0;
	for (unsigned number = 1; rc == 0 && at < b.n; number++) {
		size_t n = (size_t)((char *)memchr(b.p + at, '\n', b.n - at) - (b.p + at));
		struct err why = {0};
		if (one_line(b.p + at, n, row, context, &why) < 0)
			rc = err_set(e, why.code, "%s:%u: %s", path, number, why.msg);
		else if (b.n > RULE_FILE_BYTES + 1 && at + n + 1 > RULE_FILE_BYTES)
			rc = err_set(e, ERR_LIMIT, "%s:%u: more than %d bytes; a file of rules was expected", path, number, RULE_FILE_BYTES);
		at += n + 1;
	}
	buf_release(&b);
	return rc;
}
