/* Strings and members of objects as JSON. */
#ifndef OPSCOPE_BASE_JSON_TEXT_H
#define OPSCOPE_BASE_JSON_TEXT_H

#include "base/buf.h"

/* Appends s in quotes: always valid UTF-8, control characters and line separators escaped. */
void json_put_string(struct buf *out, struct str s);

/* Append `"name":"v"` and `"name":v`. The name is a word that needs no escaping. */
void json_put_text(struct buf *out, const char *name, struct str v);
void json_put_number(struct buf *out, const char *name, int64_t v);

#endif
