/* A JSON pull reader over a window of bytes. It makes no tree and no copies: strings, numbers and containers come back as
 * slices of the window. It accepts a superset of RFC 8259: control characters in strings, unknown escapes, bare words (N/A,
 * NaN, Infinity) and trailing commas, each reported in `repairs`, so that damaged traces can be read.
 *
 * The window must be followed by JSON_PADDING zero bytes that may be read. It need not hold a whole document: a function
 * that runs into its end fails with JSON_MORE, and the caller tries again from a known point with a longer window; with
 * `final` set the same is a truncated document. All functions return the position behind what they read, or NULL and a
 * status in *j. Positions may be passed back freely: the reader has no other state.
 *
 * Nesting is limited to JSON_DEPTH, and only inside values that are skipped or sliced. */
#ifndef OPSCOPE_IO_JSON_H
#define OPSCOPE_IO_JSON_H

#include "base/buf.h"

enum { JSON_PADDING = 64, JSON_DEPTH = 512 };

enum json_status { JSON_OK, JSON_MORE, JSON_BAD };

enum json_repair {
	JSON_REPAIR_CONTROL = 1,  /* a control character inside a string */
	JSON_REPAIR_ESCAPE = 2,   /* back-slashes that are no escapes: taken literally */
	JSON_REPAIR_BARE = 4,     /* a bare word: taken as a string */
	JSON_REPAIR_COMMA = 8,    /* a trailing or doubled comma */
	JSON_REPAIR_UTF16 = 16,   /* half a surrogate pair: U+FFFD */
};

struct json {
	const char *end;          /* of the window */
	enum json_status status;
	const char *bad;          /* JSON_BAD: where */
	const char *expected;     /* JSON_BAD: what should have stood there */
	unsigned repairs;         /* enum json_repair bits met so far; the caller clears them */
};

enum json_type { JSON_STRING, JSON_NUMBER, JSON_OBJECT, JSON_ARRAY, JSON_TRUE, JSON_FALSE, JSON_NULL, JSON_BARE };

struct json_value {
	enum json_type type;
	bool escaped;             /* JSON_STRING: holds back-slashes, see json_unescape */
	struct str raw;           /* strings: without the quotes; everything else: as written */
};

/* Skips white space. Safe at the end of the window because of the padding. */
static inline const char *json_space(const char *p)
{
	if ((unsigned char)*p > ' ')
		return p;
	while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
		p++;
	return p;
}

/* Fails: JSON_MORE when `p` has reached the end of the window, else JSON_BAD. Returns NULL. */
const char *json_fail(struct json *j, const char *p, const char *expected);

/* A string; `p` is at its opening quote. */
const char *json_string(struct json *j, const char *p, struct json_value *v);

/* Any value at `p` (no white space before it). Containers are sliced whole, however long. */
const char *json_value(struct json *j, const char *p, struct json_value *v);

/* Passes over any value. */
const char *json_skip(struct json *j, const char *p);
/* What j->expected points to where a container is nested deeper than JSON_DEPTH. */
extern const char json_too_deep[];
/* Passes over the container at p, however deep. Brackets are counted, not matched by kind. */
const char *json_skip_deep(struct json *j, const char *p);

/* Walks an object: `p` behind '{' with *first true, or behind the previous value. Gives the next key and the position
 * of its value; at the closing brace *key.raw.p is NULL and the position is behind it. */
const char *json_member(struct json *j, const char *p, bool *first, struct json_value *key);

/* Walks an array: `p` behind '[' with *first true, or behind the previous value. Gives the position of the next element, or
 * behind the closing bracket with *done true. */
const char *json_element(struct json *j, const char *p, bool *first, bool *done);

/* Appends the decoded bytes of a raw string to *out and notes repairs. A string that holds any unknown escape is taken
 * to be an unescaped Windows path: then all its back-slashes but \" and \\ stay as they are. */
void json_unescape(struct str raw, struct buf *out, unsigned *repairs);

/* Appends the text of an array or object on one line, with one blank behind each ',' and ':' as Kineto writes it: traces
 * that some tool has pretty-printed then have the same shapes as others. */
void json_one_line(struct str raw, struct buf *out);

/* Numbers. Each takes the raw text of a JSON_NUMBER and is exact; false when it is no number of that kind or out of range.
 * A fraction is cut off (to_i64) or rounded half up (to_scaled). */
bool json_to_i64(struct str raw, int64_t *v);
/* The number times 10^digits, from the decimal digits alone: micro- to nanoseconds without a double on the way. */
bool json_to_scaled(struct str raw, int digits, int64_t *v);
bool json_to_f64(struct str raw, double *v);

#endif
