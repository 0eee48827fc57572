/* Files of rules that a user wrote, a row a line; what cost_load.c and kernel_rules.c share. */
#ifndef OPSCOPE_OP_RULE_FILE_H
#define OPSCOPE_OP_RULE_FILE_H

#include "base/err.h"
#include "base/str.h"

enum { RULE_FILE_BYTES = 4 << 20, RULE_LINE_BYTES = 64 << 10 };

/* Calls row(context, line, e) for each line that holds more than a comment; the line ends in a NUL and has no other. -1 with file:line and
 * what was expected: what row said, a file that cannot be read or is too big, bytes that are no text. */
int rule_file_read(const char *path, int (*row)(void *context, const char *line, struct err *e), void *context, struct err *e);

/* Whether nothing but blanks or a comment follows a row. */
bool rule_line_ends(const char *p);

#endif
