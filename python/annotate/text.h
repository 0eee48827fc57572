/* Texts that grow, texts that are kept, and tables by which they are found again. */
#ifndef OPSCOPE_ANNOTATE_TEXT_H
#define OPSCOPE_ANNOTATE_TEXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* A text that is written more than once. `name` is the capture library's number for it, 0 = none. */
struct text {
	char *p;
	uint32_t n, name;
	bool bare;            /* of a call: without its arguments, which would not fit */
};

/* A text that grows. */
struct line {
	char *p;
	size_t n, cap;
};
void line_add(struct line *l, const char *p, size_t n);
void line_put(struct line *l, const char *text);
/* For what is short: numbers, names of types. More than 255 bytes are cut off. */
void line_format(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As repr() writes it; false when it cannot be had. */
bool line_repr(struct line *l, PyObject *value);
/* The line becomes a text, and empty. NULL without memory. */
struct text *line_text(struct line *l);
void text_free(struct text *t);

/* What stands behind the last dot of "torch.nn.Linear"; all of it where there is none. */
const char *last_name(const char *path);

/* ---- a table from words to a pointer ---- */

/* Keys are copied; equal if they are equal word by word. */
struct table {
	struct slot {
		uint64_t hash;        /* 0 = free */
		uint32_t n;
		uint64_t *key;
		void *value;
	} *slot;
	uint32_t n, cap;
};
uint64_t hash_words(const uint64_t *key, uint32_t n);
void *table_find(const struct table *t, const uint64_t *key, uint32_t n, uint64_t hash);
/* False without memory. The key must not be there. */
bool table_add(struct table *t, const uint64_t *key, uint32_t n, uint64_t hash, void *value);

#endif
