/* PyProf's argument marker, {'mod': M, 'op': O, 'args': [{'name': .., 'type': .., ...}, ...]}: a Python literal, read as data. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_OP_MARKER_H
#define OPSCOPE_PREDECESSORS_PYPROF_OP_MARKER_H

#include "base/arena.h"

enum pyprof_value { PYPROF_ABSENT, PYPROF_NONE, PYPROF_INT, PYPROF_FLOAT, PYPROF_BOOL, PYPROF_STR, PYPROF_SEQ, PYPROF_OTHER };

struct pyprof_arg {
	struct str name, type;       /* keyword or ""; "tensor", "int", ... */
	struct str dtype;            /* of tensors; {0} = none */
	bool has_shape, shape_is_list;
	const int64_t *shape;        /* rank sizes */
	unsigned rank;
	enum pyprof_value kind;      /* of 'value' */
	int64_t i;                   /* int and bool */
	struct str s;
	bool seq_is_list, seq_of_ints;
	const int64_t *seq;
	unsigned n_seq;
};

struct pyprof_marker {
	struct str mod, op;
	struct pyprof_arg *arg;
	unsigned n;
};

/* Everything in *out lives in `a` or in `text`. -1: it is no such marker. Linear in the text. */
int pyprof_marker_parse(struct str text, struct arena *a, struct pyprof_marker *out);

/* The list of strings that stands under `key` in the dictionary `text` ({'traceMarker': ['a.py:3', ...]}), or, with key NULL, that
 * `text` itself is. Items that are no strings are left out. -1: there is no such list. */
int pyprof_strings_parse(struct str text, const char *key, struct arena *a, struct str **v, unsigned *n);
/* A string in quotes; any other text as it stands. */
struct str pyprof_string_parse(struct str text, struct arena *a);
/* A list or tuple of integers. -1: it is none. */
int pyprof_ints_parse(struct str text, struct arena *a, const int64_t **v, unsigned *n);

#endif
