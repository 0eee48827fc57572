/* Texts of NVTX ranges, any bytes: a line with the domain, then the text. What comes out can be put into a span, the same text reads
 * the same again, and what the reader of Python's literals takes lies inside the text and is read again alike. */
#include "base/mem.h"
#include "input/marker.h"
#include "io/pyliteral.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_value(const struct py *v, struct str text, int depth)
{
	unsigned n = 0;
	check(depth <= PY_DEPTH && v->raw.p >= text.p && v->raw.p + v->raw.n <= text.p + text.n);
	check(v->type == PY_STR || !v->s.p);
	bool holds = v->type == PY_LIST || v->type == PY_TUPLE || v->type == PY_DICT;
	for (const struct py *item = v->first; item; item = item->next, n++) {
		check((item->key != NULL) == (v->type == PY_DICT));
		check_value(item, text, depth + 1);
		if (item->key)
			check_value(item->key, text, depth + 1);
	}
	check(n == v->n && (holds || !n));
}

static void literal(struct str text)
{
	struct arena a = {0};
	size_t at = 0, again_at;
	const struct py *v = py_parse(text, &a, &at);
	check(at <= text.n);
	if (v) {
		check(at == text.n);
		check_value(v, text, 0);
		const struct py *again = py_parse(v->raw, &a, &again_at);
		check(again && again->type == v->type && again->n == v->n && str_eq(again->s, v->s));
	}
	arena_release(&a);
}

static void marker(struct str text, struct str domain)
{
	struct profile *p = profile_new();
	struct build b;
	struct err e = {0};
	build_init(&b, p);
	struct markers *m = markers_new(&b);
	struct marker one = marker_read(m, text, domain, 1), two = marker_read(m, text, domain, 2);
	check(one.name == two.name && one.args == two.args && one.kind == two.kind && one.link_id == two.link_id);
	check(one.kind < SPAN_KINDS && one.name < p->strings.n && one.args < p->arg_set.rows.n);
	markers_free(m);
	check(build_finish(&b, &e) == 0);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1); /* nothing stands behind the text but one byte, as none stands behind a string of SQLite */
	if (size)
		memcpy(copy, data, size);
	copy[size] = 0;
	struct str text = {copy, size}, domain = {0};
	str_split(&text, '\n', &domain);
	if (!text.p) {
		text = domain;
		domain = (struct str){0};
	}
	literal(text);
	marker(text, domain);
	free(copy);
	return 0;
}
