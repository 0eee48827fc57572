/* The JSON reader on any bytes: no read outside the window, walking agrees with skipping, a longer window changes nothing. */
#include "io/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static const char *walk(struct json *j, const char *p, unsigned depth, struct buf *text);

static const char *walk_object(struct json *j, const char *p, unsigned depth, struct buf *text)
{
	bool first = true;
	while (p) {
		struct json_value key;
		p = json_member(j, p, &first, &key);
		if (!p || !key.raw.p)
			return p;
		buf_clear(text);
		json_unescape(key.raw, text, &j->repairs);
		p = walk(j, p, depth + 1, text);
	}
	return NULL;
}

static const char *walk_array(struct json *j, const char *p, unsigned depth, struct buf *text)
{
	bool first = true, done = false;
	while (p) {
		p = json_element(j, p, &first, &done);
		if (!p || done)
			return p;
		p = walk(j, p, depth + 1, text);
	}
	return NULL;
}

static void numbers(struct str raw)
{
	int64_t i, ns;
	double f;
	json_to_f64(raw, &f);
	if (json_to_i64(raw, &i) && i > -1000000000000 && i < 1000000000000 && !memchr(raw.p, '.', raw.n) &&
	    !memchr(raw.p, 'e', raw.n) && !memchr(raw.p, 'E', raw.n))
		check(json_to_scaled(raw, 3, &ns) && ns == i * 1000);
	else
		json_to_scaled(raw, 3, &ns);
}

static const char *walk(struct json *j, const char *p, unsigned depth, struct buf *text)
{
	struct json_value v;
	struct json outer = *j;
	const char *behind = json_value(&outer, p, &v), *walked = behind;
	if (behind)
		check(behind > p && behind <= j->end && v.raw.p >= p && v.raw.p + v.raw.n <= behind);
	if (depth < 40 && *p == '{')
		walked = walk_object(j, p + 1, depth, text);
	else if (depth < 40 && *p == '[')
		walked = walk_array(j, p + 1, depth, text);
	else
		*j = outer;
	if (behind && walked)
		check(walked == behind);
	if (behind && v.type == JSON_NUMBER)
		numbers(v.raw);
	if (behind && v.type == JSON_STRING) {
		buf_clear(text);
		json_unescape(v.raw, text, &j->repairs);
	}
	return walked;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + JSON_PADDING);
	if (size)
		memcpy(copy, data, size);
	memset(copy + size, 0, JSON_PADDING);
	struct buf text = {0};
	struct json j = {.end = copy + size};
	const char *begin = json_space(copy);
	const char *p = begin < j.end ? walk(&j, begin, 0, &text) : NULL;
	check(p || begin >= j.end || j.status != JSON_OK);
	/* The same text in a shorter window: "more", or the same end when that lay inside. */
	if (p && size > 1 && *begin && strchr("{[\"", *begin)) {
		struct json cut = {.end = p - 1};
		check(!json_skip(&cut, begin) && cut.status == JSON_MORE);
	}
	buf_release(&text);
	free(copy);
	return 0;
}
