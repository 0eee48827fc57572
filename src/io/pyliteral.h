/* Python literals, read as data: what repr() writes of dicts, lists, tuples, strings, numbers, True, False and None; and JSON,
 * which is nearly the same. Nothing is evaluated. */
#ifndef OPSCOPE_IO_PYLITERAL_H
#define OPSCOPE_IO_PYLITERAL_H

#include "base/arena.h"

enum py_type { PY_NONE, PY_BOOL, PY_INT, PY_FLOAT, PY_STR, PY_LIST, PY_TUPLE, PY_DICT };

struct py {
	enum py_type type;
	struct str raw;        /* as written; inside the text that was parsed */
	struct str s;          /* PY_STR: decoded */
	int64_t i;             /* PY_INT that fits (else PY_FLOAT), PY_BOOL */
	struct py *first;      /* PY_LIST, PY_TUPLE, PY_DICT: the items, in order */
	struct py **item;      /* of lists and tuples by pickle_parse_graph, in place of first */
	struct py *next;       /* the next item of the same container */
	struct py *key;        /* of an item of a dict */
	unsigned n;            /* how many items */
	bool kept;             /* while a pickle is read: its memo has the value */
};

enum { PY_DEPTH = 64 };        /* deeper nesting is damage */

/* The value that is the whole of `text`, blanks around it aside. NULL when it is not a literal: *at is then the byte where that
 * was found. Everything lives in `a`, or in `text`, which must stay. Linear in the text. */
const struct py *py_parse(struct str text, struct arena *a, size_t *at);

/* The value of a string key; NULL when `d` is no dict or has no such key. The first of equal keys. */
const struct py *py_get(const struct py *d, const char *key);

#endif
