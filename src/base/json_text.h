/* Strings and members of objects as JSON. */
#ifndef OPSCOPE_BASE_JSON_TEXT_H
#define OPSCOPE_BASE_JSON_TEXT_H

#include "base/buf.h"

/* Appends s in quotes: always valid UTF-8, control characters and line separators escaped. */
void json_put_string(struct buf *out, struct str s);

/* Append `"name":"v"` and `"name":v`. The name is a word that needs no escaping. */
void json_put_text(struct buf *out, const char *name, struct str v);
void json_put_number(struct buf *out, const char *name, int64_t v);

/* Several of the first kind, with commas between them: JSON_PUT_TEXTS(out, {"input", key}, {"worker", worker}). */
struct json_text_member {
	const char *name;
	struct str v;
};
void json_put_texts(struct buf *out, const struct json_text_member *v, size_t n);
#define JSON_PUT_TEXTS(out, ...) json_put_texts(out, (const struct json_text_member[]){__VA_ARGS__}, sizeof((const struct json_text_member[]){__VA_ARGS__}) / sizeof(struct json_text_member))

#endif
