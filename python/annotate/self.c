/* The object whose method a frame runs. frame.f_locals would tell it, but makes a dict of all variables that lives as long as the frame does before
 * Python 3.13: tensors that the program has given up would stay. So the variable is looked up where the frame itself has it. */
#include "annotate.h"

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#elif PY_VERSION_HEX < 0x030c0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

/* Where the names have "self", -1 = nowhere. */
static Py_ssize_t place_in(PyObject *names)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
		if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "self") == 0)
			return i;
	return -1;
}

#if PY_VERSION_HEX < 0x030b0000

/* Variables that functions inside use, too, stand behind the others. */
static Py_ssize_t look(PyCodeObject *code)
{
	Py_ssize_t cells = PyTuple_GET_SIZE(code->co_cellvars), at = place_in(code->co_cellvars);
	if (at >= 0)
		return code->co_nlocals + at;
	at = place_in(code->co_freevars);
	return at >= 0 ? code->co_nlocals + cells + at : place_in(code->co_varnames);
}

static PyObject *variable(PyFrameObject *frame, Py_ssize_t at)
{
	PyObject *value = frame->f_localsplus[at];
	value = value && PyCell_Check(value) ? PyCell_GET(value) : value;
	Py_XINCREF(value);
	return value;
}

#elif PY_VERSION_HEX < 0x030c0000

static Py_ssize_t look(PyCodeObject *code) { return place_in(code->co_localsplusnames); }

static PyObject *variable(PyFrameObject *frame, Py_ssize_t at)
{
	PyObject *value = frame->f_frame->localsplus[at];
	value = value && PyCell_Check(value) ? PyCell_GET(value) : value;
	Py_XINCREF(value);
	return value;
}

#else

static Py_ssize_t look(PyCodeObject *code)
{
	static const char *const lists[] = {"co_varnames", "co_freevars", "co_cellvars"};
	Py_ssize_t at = -1;
	for (int i = 0; at < 0 && i < 3; i++) {
		PyObject *names = PyObject_GetAttrString((PyObject *)code, lists[i]);
		at = names ? place_in(names) : -1;
		Py_XDECREF(names);
	}
	return at;
}

static PyObject *variable(PyFrameObject *frame, Py_ssize_t at) { return PyFrame_GetVarString(frame, "self"); }

#endif

/* Where frames of the code have the variable, -1 = nowhere. Asked once of each code, which is known by its address from then on. */
static Py_ssize_t place_of_self(PyCodeObject *code)
{
	enum { KNOWN = 2 /* what is added, so that no place is NULL */ };
	static struct table places;
	uint64_t key = (uintptr_t)code, hash = hash_words(&key, 1);
	void *known = table_find(&places, &key, 1, hash);
	if (known)
		return (Py_ssize_t)(intptr_t)known - KNOWN;
	/* A class that is being made and a module have a dict for their variables. */
	Py_ssize_t at = code->co_flags & CO_OPTIMIZED ? look(code) : -1;
	if (table_add(&places, &key, 1, hash, (void *)(intptr_t)(at + KNOWN)))
		Py_INCREF(code);
	return at;
}

PyObject *self_of(PyFrameObject *frame, PyCodeObject *code)
{
	Py_ssize_t at = place_of_self(code);
	PyObject *self = at >= 0 ? variable(frame, at) : NULL;
	PyErr_Clear();
	return self;
}
