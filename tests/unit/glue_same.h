/* The fast reader beside the strict one: every object of a text is walked by json_glue_member and json_near_value, and each
 * step is taken by json_member and json_value, too. For the unit test and the fuzzer. */
#ifndef OPSCOPE_TESTS_GLUE_SAME_H
#define OPSCOPE_TESTS_GLUE_SAME_H

#include "io/json_glue.h"

static inline bool glue_same_str(struct str a, struct str b)
{
	return (a.p == NULL) == (b.p == NULL) && a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool glue_same_status(const struct json *a, const struct json *b)
{
	return a->status == b->status && a->bad == b->bad && a->expected == b->expected && a->repairs == b->repairs;
}

/* Whether a number that is read at once is that of the strict reader, which is behind it at `behind`. */
static inline bool glue_same_numbers(const struct json *j, const char *p, const struct json_value *value, const char *behind)
{
	int64_t x = -7, whole = -7, ns = -7;
	const char *end = json_near_whole(j, p, &whole);
	if (end ? end != behind || value->type != JSON_NUMBER || !json_to_i64(value->raw, &x) || x != whole : whole != -7)
		return false;
	end = json_near_thousandths(j, p, &ns);
	return end ? end == behind && value->type == JSON_NUMBER && json_to_scaled(value->raw, 3, &x) && x == ns : ns == -7;
}

/* Whether three whole numbers that are read at once are those of the strict reader. */
static inline bool glue_same_triple(const struct json *j, const char *p, const struct json_value *value, const char *behind)
{
	int32_t v[3];
	int64_t x;
	struct json strict = *j;
	struct json_value element;
	bool first = true, done = false, same = true;
	if (!json_near_triple(j, p, v))
		return true;
	if (json_near_triple(j, p, v) != behind || value->type != JSON_ARRAY)
		return false;
	p++;
	for (unsigned i = 0; i < 3 && same; i++)
		same = (p = json_element(&strict, p, &first, &done)) && !done && (p = json_value(&strict, p, &element)) && element.type == JSON_NUMBER && json_to_i64(element.raw, &x) && x == v[i];
	return same && json_element(&strict, p, &first, &done) == behind && done && strict.repairs == j->repairs;
}

/* The value at `p` by both; NULL with *differs when they do not agree. */
static inline const char *glue_same_value(struct json *j, const char *p, struct json_value *value, bool *differs)
{
	struct json strict = *j;
	struct json_value fast_value;
	const char *fast = json_near_value(j, p, &fast_value), *behind = json_value(&strict, p, value);
	if (fast != behind || !glue_same_status(j, &strict) || !glue_same_numbers(j, p, value, behind) || !glue_same_triple(j, p, value, behind) ||
	    (behind && (fast_value.type != value->type || fast_value.escaped != value->escaped || fast_value.raw.p != value->raw.p || fast_value.raw.n != value->raw.n)))
		*differs = true;
	return *differs ? NULL : behind;
}

/* The member behind `p` by both, as json_member gives it. */
static inline const char *glue_same_member(struct json_glue *g, struct json *j, const char *p, bool *first, struct json_value *key, struct json_glue_state **met, bool *differs)
{
	struct json strict = *j;
	struct json_value fast_key;
	bool fast_first = *first;
	const char *fast = json_glue_member(g, j, p, &fast_first, &fast_key, met), *behind = json_member(&strict, p, first, key);
	if (*met)
		fast_key = (struct json_value){JSON_STRING, false, (*met)->key};
	if (fast != behind || fast_first != *first || !glue_same_status(j, &strict) ||
	    (behind && (!glue_same_str(fast_key.raw, key->raw) || (key->raw.p && fast_key.escaped != key->escaped))) ||
	    (*met && !fast))
		*differs = true;
	return *differs ? NULL : behind;
}

/* The value at `p` and the member behind, if they are found again: the position behind both, where the strict reader must be, too. */
static inline const char *glue_same_again(struct json_glue *g, struct json *j, const char *p, struct json_value *key, struct json_glue_state **met, bool *differs)
{
	const char *fast = json_glue_again(g, p, met);
	if (!fast)
		return NULL;
	struct json strict = *j;
	struct json_value value;
	bool first = false;
	const char *behind = json_value(&strict, p, &value);
	if (!behind || value.type != (*met)->value.type || value.escaped || !glue_same_str(value.raw, (*met)->value.raw) || json_member(&strict, behind, &first, key) != fast ||
	    !glue_same_status(j, &strict) || !glue_same_str((*met)->key, key->raw) || (key->raw.p && key->escaped))
		*differs = true;
	return fast;
}

/* Walks the object whose opening brace is at `p`, and those in it. The position behind it; NULL where the readers fail, or differ.
 * The values of short keys are kept. */
static inline const char *glue_same_object(struct json_glue *g, struct json *j, const char *p, unsigned depth, bool *differs)
{
	bool first = true;
	struct json_value key, v;
	struct json_glue_state *met;
	if (depth)
		json_glue_enter(g);
	else
		json_glue_begin(g);
	p = glue_same_member(g, j, p + 1, &first, &key, &met, differs);
	while (p && key.raw.p) {
		struct json_glue_state *at = met;
		bool kept = met && key.raw.n < 4;
		const char *value = p;
		if (kept && (p = glue_same_again(g, j, value, &key, &met, differs))) {
			if (*differs)
				return NULL;
			continue;
		}
		p = glue_same_value(j, value, &v, differs);
		if (p && *value == '{' && depth < 8 && !glue_same_object(g, j, value, depth + 1, differs))
			return NULL;
		if (p)
			p = glue_same_member(g, j, p, &first, &key, &met, differs);
		if (p && kept)
			json_glue_keep(g, at, value, p, &v, at->key.n < 3 ? GLUE_EACH : GLUE_LAST, &met);
	}
	return p;
}

/* Every object of the `n` bytes at `text`, wherever a brace stands; JSON_PADDING bytes of 0 follow. False when the readers differ. */
static inline bool glue_same_text(struct json_glue *g, const char *text, size_t n)
{
	bool differs = false;
	for (const char *p = text; p < text + n && !differs; p++) {
		struct json j = {.end = text + n};
		struct json_value v;
		if (*p == '{')
			glue_same_object(g, &j, p, 0, &differs);
		else
			glue_same_value(&j, p, &v, &differs);
	}
	return !differs;
}

#endif
