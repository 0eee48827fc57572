/* The forms in which calls are written down. A form is one file, format_NAME.c, that ends in its row, a word in FORMATS and one in meson.build. */
#ifndef OPSCOPE_ANNOTATE_FORMAT_H
#define OPSCOPE_ANNOTATE_FORMAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

struct marker;
struct wrapper;

struct format {
	const char *name;
	/* Begins the ranges of the call with this number; how many there are. */
	int (*begin)(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t number);
	/* Adds the argument `name` (NULL = by its place), a list that does not begin with a number, a text or None. */
	void (*put_list)(struct marker *m, PyObject *name, PyObject *list, unsigned depth);
	bool in_library;          /* ranges have numbers and arguments, which the capture library takes; false: they are NVTX's, whoever listens */
	bool one_range_an_op;     /* a function that calls one of its own name is the same op: F.relu() calls torch.relu() */
	bool few_numbers;         /* values of numbers are told while they are few, of a list and of all calls; false: always */
	bool lines_not_twice;     /* in a trace marker a line that calls itself stands once */
	bool functions_by_name;   /* function stacks know a function by its name and line, also where its class is another one */
};

/* That of the name; NULL = there is none. */
const struct format *format_named(const char *name);
/* Names of all; a new tuple, or NULL with an exception. */
PyObject *format_names(void);

/* Our own first. */
#define FORMATS(X) X(own) X(pyprof) X(dlprof)
#define FORMAT(name) extern const struct format format_##name;
FORMATS(FORMAT)
#undef FORMAT

/* ---- markers.c: what PyProf's form and DLProf's share ---- */

/* The ranges of a call: trace marker, module, arguments. */
int markers_begin(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t number);

#endif
