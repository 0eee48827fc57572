#include "annotate.h"
#include <opscope/trace.h>

#include <stdarg.h>
#include <stdio.h>

bool is_referent(PyObject *reference, const PyObject *object)
{
#if PY_VERSION_HEX >= 0x030d0000
	PyObject *now = NULL;
	if (PyWeakref_GetRef(reference, &now) < 0)
		PyErr_Clear();
	Py_XDECREF(now); /* compared only */
#else
	PyObject *now = PyWeakref_GetObject(reference);
	now = now == Py_None ? NULL : now;
#endif
	return now == object;
}

/* ---- lines ---- */

static bool line_room(struct line *l, size_t more)
{
	size_t cap = l->cap ? l->cap : 256;
	while (cap < l->n + more + 1)
		cap *= 2;
	if (cap == l->cap)
		return true;
	char *p = PyMem_Realloc(l->p, cap);
	if (!p)
		return false;
	l->p = p;
	l->cap = cap;
	return true;
}

void line_add(struct line *l, const char *p, size_t n)
{
	if (!line_room(l, n))
		return;
	memcpy(l->p + l->n, p, n);
	l->n += n;
	l->p[l->n] = 0;
}

void line_put(struct line *l, const char *text) { line_add(l, text, strlen(text)); }

void line_format(struct line *l, const char *format, ...)
{
	char some[256];
	va_list v;
	va_start(v, format);
	int n = vsnprintf(some, sizeof some, format, v);
	va_end(v);
	if (n > 0)
		line_add(l, some, (size_t)n < sizeof some ? (size_t)n : sizeof some - 1);
}

bool line_repr(struct line *l, PyObject *value)
{
	Py_ssize_t n;
	PyObject *repr = PyObject_Repr(value);
	const char *p = repr ? PyUnicode_AsUTF8AndSize(repr, &n) : NULL;
	if (p)
		line_add(l, p, (size_t)n);
	else
		error_clear();
	Py_XDECREF(repr);
	return p != NULL;
}

struct text *line_text(struct line *l)
{
	struct text *t = l->p ? PyMem_Malloc(sizeof *t) : NULL;
	char *p = t ? PyMem_Realloc(l->p, l->n + 1) : NULL;
	if (!p) {
		PyMem_Free(t);
		PyMem_Free(l->p);
		*l = (struct line){NULL, 0, 0};
		return NULL;
	}
	/* What NVTX gets ends at the first NUL. */
	*t = (struct text){.p = p, .n = (uint32_t)strlen(p)};
	t->name = opscope_name(p);
	*l = (struct line){NULL, 0, 0};
	return t;
}

void text_free(struct text *t)
{
	if (t)
		PyMem_Free(t->p);
	PyMem_Free(t);
}

const char *last_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}

/* ---- tables ---- */

uint64_t hash_words(const uint64_t *key, uint32_t n)
{
	uint64_t h = n * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ key[i]) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	return h | 1;
}

void *table_find(const struct table *t, const uint64_t *key, uint32_t n, uint64_t hash)
{
	if (!t->cap)
		return NULL;
	for (uint32_t i = (uint32_t)(hash >> 8);; i++) {
		const struct slot *s = &t->slot[i & (t->cap - 1)];
		if (!s->hash)
			return NULL;
		if (s->hash == hash && s->n == n && memcmp(s->key, key, n * sizeof *key) == 0)
			return s->value;
	}
}

static void enter(struct table *t, struct slot s)
{
	uint32_t i = (uint32_t)(s.hash >> 8);
	while (t->slot[i & (t->cap - 1)].hash)
		i++;
	t->slot[i & (t->cap - 1)] = s;
}

static bool grow(struct table *t)
{
	struct table more = {.cap = t->cap ? t->cap * 2 : 8};
	more.slot = PyMem_Calloc(more.cap, sizeof *more.slot);
	if (!more.slot)
		return false;
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slot[i].hash)
			enter(&more, t->slot[i]);
	more.n = t->n;
	PyMem_Free(t->slot);
	*t = more;
	return true;
}

bool table_add(struct table *t, const uint64_t *key, uint32_t n, uint64_t hash, void *value)
{
	if (t->n >= t->cap / 2 && !grow(t))
		return false;
	uint64_t *copy = PyMem_Malloc(n * sizeof *copy + 1);
	if (!copy)
		return false;
	memcpy(copy, key, n * sizeof *copy);
	enter(t, (struct slot){hash, n, copy, value});
	t->n++;
	return true;
}
