/* Events of torch's profiler by the methods that Python has: any torch without Kineto, a few microseconds an event. */
#include "profiler.h"

#include <stdlib.h>

/* The GIL is held throughout: needs_python. The name is the one that Python has of it: it remembers by their addresses what names it found, and
 * would keep thousands of new ones. */
static PyObject *ask(PyObject *event, const char *method)
{
	PyObject *name = PyUnicode_InternFromString(method), *answer = name ? PyObject_CallMethodObjArgs(event, name, NULL) : NULL;
	Py_XDECREF(name);
	return answer;
}

static int ask_i64(PyObject *event, const char *method, int64_t *v)
{
	PyObject *answer = ask(event, method);
	if (!answer)
		return -1;
	*v = PyLong_AsLongLong(answer);
	Py_DECREF(answer);
	return *v == -1 && PyErr_Occurred() ? -1 : 0;
}

static int ask_u64(PyObject *event, const char *method, uint64_t *v)
{
	PyObject *answer = ask(event, method);
	if (!answer)
		return -1;
	*v = PyLong_AsUnsignedLongLong(answer);
	Py_DECREF(answer);
	return *v == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

/* Small numbers, and members of a pybind11 enumeration, which int() knows. */
static int ask_int(PyObject *event, const char *method, int *v)
{
	PyObject *answer = ask(event, method), *number = answer ? PyNumber_Long(answer) : NULL;
	Py_XDECREF(answer);
	if (!number)
		return -1;
	*v = (int)PyLong_AsLong(number);
	Py_DECREF(number);
	return *v == -1 && PyErr_Occurred() ? -1 : 0;
}

static int ask_bool(PyObject *event, const char *method, bool *v)
{
	PyObject *answer = ask(event, method);
	int yes = answer ? PyObject_IsTrue(answer) : -1;
	Py_XDECREF(answer);
	*v = yes > 0;
	return yes < 0 ? -1 : 0;
}

struct getters {
	PyObject *events;   /* a list, borrowed */
	PyObject *name;     /* of the event that was read last, as bytes */
};

static PyObject *event_at(const struct result_source *s, size_t i)
{
	const struct getters *g = s->context;
	return PyList_GetItem(g->events, (Py_ssize_t)i);
}

static int read_name(struct getters *g, PyObject *event, struct result_event *e)
{
	PyObject *name = ask(event, "name");
	Py_XDECREF(g->name);
	g->name = name ? PyUnicode_AsUTF8String(name) : NULL;
	Py_XDECREF(name);
	if (!g->name)
		return -1;
	e->name = PyBytes_AsString(g->name);
	e->name_n = (size_t)PyBytes_Size(g->name);
	return 0;
}

static int read_event(const struct result_source *s, size_t i, struct result_event *e)
{
	PyObject *event = event_at(s, i);
	if (!event || read_name(s->context, event, e) < 0)
		return -1;
	int failed = ask_i64(event, "start_us", &e->start_us) || ask_i64(event, "duration_us", &e->duration_us) ||
	             ask_u64(event, "start_thread_id", &e->start_thread) || ask_u64(event, "end_thread_id", &e->end_thread) ||
	             ask_u64(event, "fwd_thread_id", &e->fwd_thread) || ask_u64(event, "linked_correlation_id", &e->linked) ||
	             (s->flops && ask_u64(event, "flops", &e->flops)) || ask_i64(event, "sequence_nr", &e->sequence) ||
	             ask_i64(event, "nbytes", &e->bytes) || (s->device_times && ask_i64(event, "cuda_elapsed_us", &e->device_us)) ||
	             ask_int(event, "device_type", &e->device_type) || ask_int(event, "device_index", &e->device_index) ||
	             ask_int(event, "scope", &e->scope) || ask_bool(event, "is_async", &e->async);
	return failed ? -1 : 0;
}

/* What a method of the event lists, each element by `put`, with `between` before all but the first. */
static int put_list(const struct result_source *s, size_t i, const char *method, const char *between, int (*put)(PyObject *item, struct out *o),
                    struct out *o)
{
	PyObject *event = event_at(s, i), *answer = event ? ask(event, method) : NULL;
	PyObject *list = answer ? PySequence_List(answer) : NULL;
	Py_XDECREF(answer);
	if (!list)
		return -1;
	int rc = 0;
	for (Py_ssize_t k = 0; k < PyList_Size(list) && rc == 0; k++) {
		out_text(o, k ? between : "");
		rc = put(PyList_GetItem(list, k), o);
	}
	Py_DECREF(list);
	return rc;
}

static int put_number(PyObject *item, struct out *o)
{
	long long v = PyLong_AsLongLong(item);
	if (v == -1 && PyErr_Occurred())
		return -1;
	out_i64(o, v);
	return 0;
}

static int put_shape(PyObject *item, struct out *o)
{
	PyObject *dims = PySequence_List(item);
	int rc = dims ? 0 : -1;
	out_text(o, "[");
	for (Py_ssize_t k = 0; rc == 0 && k < PyList_Size(dims); k++) {
		out_text(o, k ? "," : "");
		rc = put_number(PyList_GetItem(dims, k), o);
	}
	out_text(o, "]");
	Py_XDECREF(dims);
	return rc;
}

static int put_text(PyObject *item, struct out *o, void (*put)(struct out *o, const char *p, size_t n))
{
	PyObject *bytes = PyUnicode_AsUTF8String(item);
	if (!bytes)
		return -1;
	put(o, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
	Py_DECREF(bytes);
	return 0;
}

static int put_type(PyObject *item, struct out *o)
{
	return put_text(item, o, out_string);
}

static int put_frame(PyObject *item, struct out *o)
{
	return put_text(item, o, out_inside);
}

static int put_shapes(const struct result_source *s, size_t i, struct out *o)
{
	return put_list(s, i, "shapes", ",", put_shape, o);
}

/* Whether one of the event's arguments is a tensor; -1 with a Python error. */
static int has_tensor(PyObject *event)
{
	PyObject *answer = ask(event, "dtypes"), *types = answer ? PySequence_List(answer) : NULL;
	int any = types ? 0 : -1;
	for (Py_ssize_t k = 0; any == 0 && k < PyList_Size(types); k++) {
		PyObject *bytes = PyUnicode_AsUTF8String(PyList_GetItem(types, k));
		size_t n = bytes ? (size_t)PyBytes_Size(bytes) : 0;
		any = bytes ? n && !is_scalar(PyBytes_AsString(bytes), n) : -1;
		Py_XDECREF(bytes);
	}
	Py_XDECREF(answer);
	Py_XDECREF(types);
	return any;
}

static int put_types(const struct result_source *s, size_t i, struct out *o)
{
	PyObject *event = event_at(s, i);
	int any = event ? has_tensor(event) : -1;
	return any > 0 ? put_list(s, i, "dtypes", ",", put_type, o) : any;
}

static int put_stack(const struct result_source *s, size_t i, struct out *o)
{
	return put_list(s, i, "stack", ";", put_frame, o);
}

static void getters_close(struct result_source *s)
{
	struct getters *g = s->context;
	Py_XDECREF(g->name);
	free(g);
}

int getters_source(PyObject *events, int64_t start_us, struct result_source *s)
{
	struct getters *g = calloc(1, sizeof *g);
	if (!g) {
		PyErr_NoMemory();
		return -1;
	}
	g->events = events;
	*s = (struct result_source){
		.n = (size_t)PyList_Size(events), .start_us = start_us, .context = g, .needs_python = true,
		.read = read_event, .shapes = put_shapes, .types = put_types, .stack = put_stack, .close = getters_close,
	};
	return 0;
}
