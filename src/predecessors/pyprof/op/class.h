/* A class of ops that share a formula, and what formulas are written with.
 *
 * Adding a class: in a file of this folder a `const struct pyprof_class pyprof_class_NAME = {...};`, and the word NAME in
 * meson.build, whose order is the order in which classes are asked. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_OP_CLASS_H
#define OPSCOPE_PREDECESSORS_PYPROF_OP_CLASS_H

#include "predecessors/pyprof/op/pyprof.h"

struct pyprof_class {
	const char *const *ops;                    /* NULL-terminated; NULL = every op */
	bool (*takes)(const struct pyprof_call *); /* a further condition; NULL = none */
	bool not_in_2;                             /* PyProf2 has no such class */
	/* 0, or -1 through REQUIRE. Sets flops, bytes, params; op and tc are the marker's op and '-' beforehand. */
	int (*model)(const struct pyprof_call *c, struct pyprof_model *out);
};

extern const struct pyprof_class *const pyprof_class_registry[]; /* NULL-terminated, generated */

/* What PyProf asserts; the text says what was expected. */
#define REQUIRE(out, condition, text)                                                                  \
	do {                                                                                           \
		if (!(condition)) {                                                                    \
			(out)->why = (text);                                                           \
			return -1;                                                                     \
		}                                                                                      \
	} while (0)

static inline bool pyprof_word_in(struct str s, const char *const *list)
{
	for (; *list; list++)
		if (str_eqc(s, *list))
			return true;
	return false;
}
/* Does the text contain one of these? */
static inline bool pyprof_contains(struct str s, const char *const *list)
{
	for (; *list; list++)
		if (str_has(s, str_from(*list)))
			return true;
	return false;
}

/* Integers as Python's, as far as 64 bits go: beyond, out->overflow is set and the row is refused. */
int64_t pyprof_mul(struct pyprof_model *out, int64_t a, int64_t b);
int64_t pyprof_add(struct pyprof_model *out, int64_t a, int64_t b);
int64_t pyprof_product(struct pyprof_model *out, const int64_t *v, unsigned n);
static inline int64_t pyprof_elements(struct pyprof_model *out, const struct pyprof_arg *a)
{
	return pyprof_product(out, a->shape, a->rank);
}
static inline struct pyprof_num pyprof_int(int64_t v) { return (struct pyprof_num){.i = v}; }
static inline struct pyprof_num pyprof_float(double v) { return (struct pyprof_num){.f = v, .is_float = true}; }

static inline bool pyprof_is_tensor(const struct pyprof_arg *a) { return a->has_shape && a->dtype.p; }
static inline bool pyprof_same_shape(const struct pyprof_arg *a, const struct pyprof_arg *b)
{
	return a->rank == b->rank && (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}
/* numpy's broadcast of n shapes. false: they do not fit. *out has room for PYPROF_RANK sizes. */
enum { PYPROF_RANK = 32 };
bool pyprof_broadcast(const struct pyprof_arg *const *a, unsigned n, int64_t *out, unsigned *rank);

/* Arguments by position among those without a keyword, or by keyword; NULL = none. */
const struct pyprof_arg *pyprof_positional(const struct pyprof_marker *m, unsigned i);
unsigned pyprof_n_positional(const struct pyprof_marker *m);
const struct pyprof_arg *pyprof_named(const struct pyprof_marker *m, const char *name);
/* Argument i when it has no keyword, else the one with this keyword; NULL = none. */
const struct pyprof_arg *pyprof_at_or_named(const struct pyprof_marker *m, unsigned i, const char *name);

/* Bytes of an element. Classes written with dictionaries of parameters do not know bool, those written with tensors do.
 * 0 = not known: PyProf ended. */
int pyprof_size(struct str dtype);
int pyprof_tensor_size(struct str dtype);

/* Parameters. */
void pyprof_put_int(struct pyprof_model *out, const char *key, int64_t v);
void pyprof_put_text(struct pyprof_model *out, const char *key, struct str v);
void pyprof_put_shape(struct pyprof_model *out, const char *key, const struct pyprof_arg *a); /* "T=(3,4)," */
void pyprof_put_dims(struct pyprof_model *out, const int64_t *v, unsigned n, bool list);      /* "(3,4)" */
void pyprof_put_type(struct pyprof_model *out, struct str dtype);                             /* "fp32," */
void pyprof_put_tensor(struct pyprof_model *out, const int64_t *shape, unsigned rank, struct str dtype); /* "[3,4]fp32" */
/* One tensor and its type, in the way of either version: "[3,4]fp32", "T=(3,4),fp32,". */
void pyprof_put_input(struct pyprof_model *out, const struct pyprof_call *c, const struct pyprof_arg *a);

/* '1' or '0' (or `otherwise`) by the kernel's name: PyProf 3 has one list for all, PyProf2 a word or two for each class. */
char pyprof_tensor_core(const struct pyprof_call *c, const char *word2, const char *other_word2, char otherwise);

#endif
