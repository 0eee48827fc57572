/* Options of the library: variables OPSCOPE_*, read once, since a program may change its environment. */
#ifndef OPSCOPE_COLLECT_OPTIONS_H
#define OPSCOPE_COLLECT_OPTIONS_H

#include "writer.h"

void options_read(void);
/* A size; 0 = none, or no number. option() is declared in writer.h. */
int64_t option_bytes(const char *name);
/* The i-th option, from 0, without "OPSCOPE_"; false = there are no more. */
bool options_at(int i, const char **name, const char **value);
/* The first variable that had no place; "" = none. */
const char *options_left_out(void);

#endif
