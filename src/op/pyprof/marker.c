#include "op/pyprof/marker.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

enum { DEPTH = 32 };

struct cursor {
	const char *p, *end;
	struct arena *a;
	int depth;
};

static void skip_blanks(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
}

static bool take(struct cursor *c, char want)
{
	skip_blanks(c);
	if (c->p == c->end || *c->p != want)
		return false;
	c->p++;
	return true;
}

static char peek(struct cursor *c)
{
	skip_blanks(c);
	return c->p < c->end ? *c->p : '\0';
}

static char unescaped(char c)
{
	static const char from[] = "ntr", to[] = "\n\t\r";
	const char *at = c ? strchr(from, c) : NULL;
	return at ? to[at - from] : c;
}

static int read_string(struct cursor *c, struct str *out)
{
	char quote = peek(c);
	if (quote != '\'' && quote != '"')
		return -1;
	const char *start = ++c->p;
	size_t escapes = 0;
	for (; c->p < c->end && *c->p != quote; c->p++)
		if (*c->p == '\\' && c->p + 1 < c->end) {
			c->p++;
			escapes++;
		}
	if (c->p >= c->end)
		return -1;
	*out = (struct str){start, (size_t)(c->p - start)};
	c->p++;
	if (!escapes)
		return 0;
	char *copy = arena_bytes(c->a, out->n);
	size_t n = 0;
	for (size_t i = 0; i < out->n; i++)
		copy[n++] = start[i] == '\\' && i + 1 < out->n ? unescaped(start[++i]) : start[i];
	*out = (struct str){copy, n};
	return 0;
}

/* A word: number, True, None, inf, ... */
static struct str read_word(struct cursor *c)
{
	skip_blanks(c);
	const char *start = c->p;
	while (c->p < c->end && !strchr(",:()[]{}'\" \t\n\r", *c->p) && *c->p)
		c->p++;
	return (struct str){start, (size_t)(c->p - start)};
}

static int skip_value(struct cursor *c);

/* Items up to `close`, each skipped; of a dict the keys and the values. */
static int skip_items(struct cursor *c, char close)
{
	if (++c->depth > DEPTH)
		return -1;
	while (!take(c, close)) {
		if (skip_value(c) < 0)
			return -1;
		if (!take(c, ',') && !take(c, ':') && peek(c) != close)
			return -1;
	}
	c->depth--;
	return 0;
}

static int skip_value(struct cursor *c)
{
	struct str ignored;
	switch (peek(c)) {
	case '\'':
	case '"':
		return read_string(c, &ignored);
	case '(':
		c->p++;
		return skip_items(c, ')');
	case '[':
		c->p++;
		return skip_items(c, ']');
	case '{':
		c->p++;
		return skip_items(c, '}');
	}
	return read_word(c).n ? 0 : -1;
}

/* A sequence; integers are kept, and *ints says whether all are. */
static int read_sequence(struct cursor *c, bool *is_list, bool *ints, const int64_t **v, unsigned *n)
{
	int64_t *got = NULL;
	unsigned cap = 0;
	*is_list = take(c, '[');
	*ints = true;
	*n = 0;
	if (!*is_list && !take(c, '('))
		return -1;
	char close = *is_list ? ']' : ')';
	int rc = 0;
	while (rc == 0 && !take(c, close)) {
		char first = peek(c);
		int64_t i = 0;
		if (first == '-' || (first >= '0' && first <= '9'))
			*ints &= str_to_i64(read_word(c), &i);
		else
			*ints = false, rc = skip_value(c);
		MEM_GROW(got, cap, *n + 1);
		got[(*n)++] = i;
		if (rc == 0 && !take(c, ',') && peek(c) != close)
			rc = -1;
	}
	int64_t *kept = ARENA_ARRAY(c->a, *n, int64_t);
	if (*n)
		memcpy(kept, got, *n * sizeof *kept);
	*v = kept;
	mem_free(got);
	return rc;
}

static int read_scalar(struct cursor *c, struct pyprof_arg *a)
{
	struct str w = read_word(c);
	if (!w.n)
		return -1;
	char text[64], *end;
	size_t n = w.n < sizeof text ? w.n : sizeof text - 1;
	memcpy(text, w.p, n);
	text[n] = '\0';
	a->kind = PYPROF_OTHER;
	if (str_eqc(w, "None")) {
		a->kind = PYPROF_NONE;
	} else if (str_eqc(w, "True") || str_eqc(w, "False")) {
		a->kind = PYPROF_BOOL;
		a->i = text[0] == 'T';
	} else if (str_to_i64(w, &a->i)) {
		a->kind = PYPROF_INT;
		a->f = (double)a->i;
	} else {
		a->f = strtod(text, &end);
		if (end != text && !*end)
			a->kind = PYPROF_FLOAT;
	}
	return 0;
}

static int read_value(struct cursor *c, struct pyprof_arg *a)
{
	switch (peek(c)) {
	case '\'':
	case '"':
		a->kind = PYPROF_STR;
		return read_string(c, &a->s);
	case '(':
	case '[':
		a->kind = PYPROF_SEQ;
		return read_sequence(c, &a->seq_is_list, &a->seq_of_ints, &a->seq, &a->n_seq);
	case '{':
		a->kind = PYPROF_OTHER;
		return skip_value(c);
	}
	return read_scalar(c, a);
}

static int read_field(struct cursor *c, struct pyprof_arg *a)
{
	struct str key;
	bool ints;
	if (read_string(c, &key) < 0 || !take(c, ':'))
		return -1;
	bool text = peek(c) == '\'' || peek(c) == '"';
	if (text && str_eqc(key, "name"))
		return read_string(c, &a->name);
	if (text && str_eqc(key, "type"))
		return read_string(c, &a->type);
	if (text && str_eqc(key, "dtype"))
		return read_string(c, &a->dtype);
	if (str_eqc(key, "value"))
		return read_value(c, a);
	if (!str_eqc(key, "shape"))
		return skip_value(c);
	a->has_shape = true;
	if (read_sequence(c, &a->shape_is_list, &ints, &a->shape, &a->rank) < 0)
		return -1;
	return ints ? 0 : -1;
}

static int read_arg(struct cursor *c, struct pyprof_arg *a)
{
	*a = (struct pyprof_arg){.name = STR(""), .type = STR("")};
	if (!take(c, '{'))
		return -1;
	while (!take(c, '}'))
		if (read_field(c, a) < 0 || (!take(c, ',') && peek(c) != '}'))
			return -1;
	return 0;
}

static int read_args(struct cursor *c, struct pyprof_marker *m)
{
	struct pyprof_arg *v = NULL;
	unsigned cap = 0;
	int rc = take(c, '[') ? 0 : -1;
	m->n = 0;
	while (rc == 0 && !take(c, ']')) {
		MEM_GROW(v, cap, m->n + 1);
		rc = read_arg(c, &v[m->n++]);
		if (rc == 0 && !take(c, ',') && peek(c) != ']')
			rc = -1;
	}
	if (rc == 0) {
		m->arg = ARENA_ARRAY(c->a, m->n, struct pyprof_arg);
		if (m->n)
			memcpy(m->arg, v, m->n * sizeof *v);
	}
	mem_free(v);
	return rc;
}

int pyprof_marker_parse(struct str text, struct arena *a, struct pyprof_marker *out)
{
	struct cursor c = {text.p, text.p + text.n, a, 0};
	unsigned seen = 0;
	*out = (struct pyprof_marker){0};
	if (!take(&c, '{'))
		return -1;
	while (!take(&c, '}')) {
		struct str key;
		int rc;
		if (read_string(&c, &key) < 0 || !take(&c, ':'))
			return -1;
		if (str_eqc(key, "mod"))
			rc = read_string(&c, &out->mod), seen |= 1;
		else if (str_eqc(key, "op"))
			rc = read_string(&c, &out->op), seen |= 2;
		else if (str_eqc(key, "args"))
			rc = read_args(&c, out), seen |= 4;
		else
			rc = skip_value(&c);
		if (rc < 0 || (!take(&c, ',') && peek(&c) != '}'))
			return -1;
	}
	return seen == 7 ? 0 : -1;
}

static int read_strings(struct cursor *c, struct str **v, unsigned *n)
{
	struct str *got = NULL;
	unsigned cap = 0;
	*n = 0;
	int rc = take(c, '[') ? 0 : -1;
	while (rc == 0 && !take(c, ']')) {
		struct str s;
		if (peek(c) != '\'' && peek(c) != '"') {
			rc = skip_value(c);
		} else if ((rc = read_string(c, &s)) == 0) {
			MEM_GROW(got, cap, *n + 1);
			got[(*n)++] = s;
		}
		if (rc == 0 && !take(c, ',') && peek(c) != ']')
			rc = -1;
	}
	*v = ARENA_ARRAY(c->a, *n, struct str);
	if (*n)
		memcpy(*v, got, *n * sizeof **v);
	mem_free(got);
	return rc;
}

int pyprof_strings_parse(struct str text, const char *key, struct arena *a, struct str **v, unsigned *n)
{
	struct cursor c = {text.p, text.p + text.n, a, 0};
	*n = 0;
	if (!key)
		return read_strings(&c, v, n);
	if (!take(&c, '{'))
		return -1;
	while (!take(&c, '}')) {
		struct str k;
		if (read_string(&c, &k) < 0 || !take(&c, ':'))
			return -1;
		if (str_eqc(k, key))
			return read_strings(&c, v, n);
		if (skip_value(&c) < 0 || (!take(&c, ',') && peek(&c) != '}'))
			return -1;
	}
	return -1;
}

int pyprof_ints_parse(struct str text, struct arena *a, const int64_t **v, unsigned *n)
{
	struct cursor c = {text.p, text.p + text.n, a, 0};
	bool list, ints;
	*n = 0;
	return peek(&c) && read_sequence(&c, &list, &ints, v, n) == 0 && ints ? 0 : -1;
}

struct str pyprof_string_parse(struct str text, struct arena *a)
{
	struct cursor c = {text.p, text.p + text.n, a, 0};
	struct str s;
	return read_string(&c, &s) == 0 ? s : text;
}
