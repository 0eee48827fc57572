#include "annotate.h"

#include <signal.h>

/* What the interpreter runs when it calls the handler; a new reference, or NULL where that is nothing written in Python. */
static PyObject *code_of(PyObject *handler)
{
	enum { WRAPPED_MOST = 8 };
	PyObject *f = handler;
	Py_INCREF(f);
	for (int i = 0; f && !PyFunction_Check(f); i++) {
		PyObject *next = NULL;
		bool ends = i == WRAPPED_MOST || PyCFunction_Check(f) || PyLong_Check(f) || f == Py_None;
		if (!ends && !(next = PyObject_GetAttrString(f, PyMethod_Check(f) ? "__func__" : "func"))) /* of a partial */
			next = PyObject_GetAttrString((PyObject *)Py_TYPE(f), "__call__");
		PyErr_Clear();
		Py_SETREF(f, next);
	}
	PyObject *code = f ? PyFunction_GetCode(f) : NULL;
	Py_XINCREF(code);
	Py_XDECREF(f);
	return code;
}

/* The codes of all handlers of signals, as a set. */
static PyObject *handlers(void)
{
	PyObject *signals = PyImport_ImportModule("_signal"), *all = signals ? PySet_New(NULL) : NULL;
	for (int n = 1; all && n < NSIG; n++) {
		PyObject *handler = PyObject_CallMethod(signals, "getsignal", "i", n), *code = handler ? code_of(handler) : NULL;
		if (code)
			PySet_Add(all, code);
		PyErr_Clear();
		Py_XDECREF(code);
		Py_XDECREF(handler);
	}
	PyErr_Clear();
	Py_XDECREF(signals);
	return all;
}

static bool is_from_handler(PyObject *trace)
{
	PyObject *all = trace ? handlers() : NULL;
	bool found = false;
	for (PyTracebackObject *t = (PyTracebackObject *)trace; all && t && !found; t = t->tb_next) {
		PyCodeObject *code = PyFrame_GetCode(t->tb_frame);
		found = PySet_Contains(all, (PyObject *)code) == 1;
		Py_DECREF(code);
	}
	PyErr_Clear();
	Py_XDECREF(all);
	return found;
}

void error_clear(void)
{
	struct error e, *kept = &thread_self.error;
	if (LIKELY(!PyErr_Occurred()))
		return;
	PyErr_Fetch(&e.type, &e.value, &e.trace);
	bool keeps = !PyErr_GivenExceptionMatches(e.type, PyExc_Exception) || is_from_handler(e.trace);
	struct error drop = keeps ? *kept : e;
	if (keeps)
		*kept = e;
	Py_XDECREF(drop.type);
	Py_XDECREF(drop.value);
	Py_XDECREF(drop.trace);
}

bool error_raise(void)
{
	struct error e = thread_self.error;
	if (LIKELY(!e.type))
		return false;
	thread_self.error = (struct error){NULL, NULL, NULL};
	PyErr_Restore(e.type, e.value, e.trace);
	return true;
}
