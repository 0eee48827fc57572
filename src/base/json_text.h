/* Strings as JSON. */
#ifndef OPSCOPE_BASE_JSON_TEXT_H
#define OPSCOPE_BASE_JSON_TEXT_H

#include "base/buf.h"

/* Appends s in quotes: always valid UTF-8, control characters and line separators escaped. */
void json_put_string(struct buf *out, struct str s);

#endif
