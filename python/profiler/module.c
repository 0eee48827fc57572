/* A recording of torch's profiler as a Kineto trace in JSON, with what torch's own files lack without Kineto: shapes, types, stacks, memory,
 * sequence numbers. An event is some 150 bytes; nothing is kept in memory but a block of text. */
#include "profiler.h"

#include <errno.h>
#include <string.h>

/* What is asked for, and what came of it. */
struct writing {
	const struct result_source *s;
	struct out o;
	const char *head, *tail;  /* text before and behind the events */
	int64_t base_us;          /* times are written from here on */
	int64_t last_us;          /* the end of the last event */
	long pid;
	int shapes, stacks, flops, device_times;
	Py_ssize_t lost_times;    /* ops whose device time was measured by events of CUDA: not in the trace */
	bool any;
};

__attribute__((always_inline)) static inline void put_member(struct out *o, const char *name, int64_t v)
{
	out_text(o, name);
	out_i64(o, v);
}

static void put_head(struct writing *w, const struct result_event *e, const char *phase, const char *category)
{
	struct out *o = &w->o;
	out_text(o, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	out_text(o, phase);
	out_text(o, "\",\"cat\":\"");
	out_text(o, category);
	out_text(o, "\",\"name\":");
	out_string(o, e->name, e->name_n);
	put_member(o, ",\"pid\":", w->pid);
	put_member(o, ",\"tid\":", (int64_t)e->start_thread);
	put_member(o, ",\"ts\":", e->start_us - w->base_us);
	w->any = true;
}

/* The name of an argument; whatever it is, it can be taken back. */
__attribute__((always_inline)) static inline void put_key(struct out *o, bool any, const char *key)
{
	out_room(o, strlen(key) + 1);
	if (any)
		out_char(o, ',');
	out_text(o, key);
}

__attribute__((always_inline)) static inline void put_arg(struct out *o, bool *any, const char *key, int64_t v)
{
	put_key(o, *any, key);
	out_i64(o, v);
	*any = true;
}

/* A list as an argument, if it has an element. Always inline, as with out_text. */
__attribute__((always_inline)) static inline int put_list(struct writing *w, size_t i, bool *any, const char *key, const char *end,
                    int (*put)(const struct result_source *, size_t, struct out *))
{
	struct out *o = &w->o;
	out_room(o, strlen(key) + 1);
	struct out before = *o;
	put_key(o, *any, key);
	int64_t bytes = out_bytes(o);
	if (put(w->s, i, o) < 0)
		return -1;
	if (out_bytes(o) == bytes) {
		*o = before;
		return 0;
	}
	out_text(o, end);
	*any = true;
	return 0;
}

static const char *category_of(const struct result_event *e)
{
	if (e->async || e->start_thread != e->end_thread)
		return "async_op";
	return e->scope == SCOPE_USER ? "user_annotation" : "cpu_op";
}

static int put_op(struct writing *w, size_t i, const struct result_event *e)
{
	struct out *o = &w->o;
	bool any = false;
	put_head(w, e, "X", category_of(e));
	put_member(o, ",\"dur\":", e->duration_us);
	out_text(o, ",\"args\":{");
	if (e->sequence >= 0)
		put_arg(o, &any, "\"Sequence number\":", e->sequence);
	if (e->fwd_thread)
		put_arg(o, &any, "\"Fwd thread id\":", (int64_t)e->fwd_thread);
	if (e->scope == SCOPE_BACKWARD)
		put_arg(o, &any, "\"Backward node\":", 1);
	if (w->shapes && (put_list(w, i, &any, "\"Input Dims\":[", "]", w->s->shapes) < 0 || put_list(w, i, &any, "\"Input type\":[", "]", w->s->types) < 0))
		return -1;
	if (w->flops)
		put_arg(o, &any, "\"Counted FLOPs\":", (int64_t)e->flops);
	if (w->stacks && put_list(w, i, &any, "\"Call stack\":\"", "\"", w->s->stack) < 0)
		return -1;
	out_text(o, "}}");
	w->lost_times += e->device_us > 0;
	return 0;
}

static void put_memory(struct writing *w, const struct result_event *e)
{
	put_head(w, e, "i", "cpu_instant_event");
	put_member(&w->o, ",\"s\":\"t\",\"args\":{\"Bytes\":", e->bytes);
	put_member(&w->o, ",\"Device Type\":", e->device_type);
	put_member(&w->o, ",\"Device Id\":", (int8_t)e->device_index);
	if (e->placed) {
		put_member(&w->o, ",\"Addr\":", e->memory.address);
		put_member(&w->o, ",\"Total Allocated\":", e->memory.total_allocated);
		put_member(&w->o, ",\"Total Reserved\":", e->memory.total_reserved);
	}
	out_text(&w->o, "}}");
}

static void put_device_work(struct writing *w, const struct result_event *e)
{
	put_head(w, e, "X", "kernel");
	put_member(&w->o, ",\"dur\":", e->duration_us);
	put_member(&w->o, ",\"args\":{\"External id\":", (int64_t)e->linked);
	put_member(&w->o, ",\"device\":", e->device_index);
	out_text(&w->o, "}}");
}

static int put_event(struct writing *w, size_t i)
{
	struct result_event e = {0};
	if (w->s->read(w->s, i, &e) < 0)
		return -1;
	if (e.start_us + e.duration_us > w->last_us)
		w->last_us = e.start_us + e.duration_us;
	if (is_allocation(&e))
		put_memory(w, &e);
	else if (e.device_type != DEVICE_CPU)
		put_device_work(w, &e);
	else
		return put_op(w, i, &e);
	return 0;
}

/* When and how long was recorded, as Kineto says it. */
static void put_span(struct writing *w)
{
	struct out *o = &w->o;
	out_text(o, w->any ? ",\n" : "\n");
	out_text(o, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\"");
	put_member(o, ",\"ts\":", w->s->start_us - w->base_us);
	put_member(o, ",\"dur\":", w->last_us > w->s->start_us ? w->last_us - w->s->start_us : 0);
	out_text(o, ",\"args\":{}}");
}

/* All events. -1 with a Python error, where the source has any. */
static int put_events(struct writing *w)
{
	for (size_t i = 0; i < w->s->n && !w->o.error; i++)
		if (put_event(w, i) < 0)
			return -1;
	put_span(w);
	return 0;
}

/* (events, start of the recording in us, where the events' text begins and ends in the file, ops with a device time that the trace lacks). */
static PyObject *write_trace(struct result_source *s, struct writing *w, int fd)
{
	if (out_init(&w->o, fd) < 0) {
		s->close(s);
		return PyErr_NoMemory();
	}
	s->flops = w->flops;
	s->device_times = w->device_times;
	s->asks_shapes = w->shapes;
	s->asks_stack = w->stacks;
	w->s = s;
	w->last_us = s->start_us;
	if (w->base_us == INT64_MIN)
		w->base_us = s->start_us;
	out_text(&w->o, w->head);
	int64_t begin = out_bytes(&w->o);
	PyThreadState *released = s->needs_python ? NULL : PyEval_SaveThread();
	int rc = put_events(w);
	int64_t end = out_bytes(&w->o);
	out_text(&w->o, w->tail);
	int error = out_finish(&w->o);
	if (released)
		PyEval_RestoreThread(released);
	Py_ssize_t n = (Py_ssize_t)s->n;
	long long start_us = s->start_us;
	s->close(s);
	if (rc < 0)
		return NULL;
	if (error) {
		errno = error;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return Py_BuildValue("nLLLn", n, start_us, (long long)begin, (long long)end, w->lost_times);
}

static const struct direct *direct;

static PyObject *py_open_direct(PyObject *module, PyObject *args)
{
	const char *library;
	(void)module;
	if (!PyArg_ParseTuple(args, "s", &library))
		return NULL;
	direct = direct_open(library);
	return PyBool_FromLong(direct != NULL);
}

static PyObject *py_stride(PyObject *module, PyObject *args)
{
	PyObject *result;
	Py_ssize_t n;
	(void)module;
	if (!PyArg_ParseTuple(args, "On", &result, &n))
		return NULL;
	return PyLong_FromSize_t(n > 0 ? direct_stride(result, (size_t)n) : 0);
}

/* A list of (address, bytes, total allocated, total reserved), in v, of which there is room for `most`. -1 with a Python error. */
static Py_ssize_t read_allocations(PyObject *list, struct result_memory *v, Py_ssize_t most)
{
	Py_ssize_t n = PyList_Size(list);
	for (Py_ssize_t i = 0; i < n && i < most; i++) {
		long long a[4];
		PyObject *item = PyList_GetItem(list, i);
		if (!PyTuple_Check(item)) {
			PyErr_SetString(PyExc_TypeError, "tuples of four numbers were expected");
			return -1;
		}
		if (!PyArg_ParseTuple(item, "LLLL", &a[0], &a[1], &a[2], &a[3]))
			return -1;
		v[i] = (struct result_memory){a[0], a[1], a[2], a[3]};
	}
	return n < most ? n : most;
}

static PyObject *py_find_memory(PyObject *module, PyObject *args)
{
	enum { MOST = 256 };
	PyObject *result, *list;
	Py_ssize_t stride;
	struct result_memory v[MOST];
	(void)module;
	if (!PyArg_ParseTuple(args, "OnO!", &result, &stride, &PyList_Type, &list))
		return NULL;
	Py_ssize_t n = read_allocations(list, v, MOST);
	if (n < 0)
		return NULL;
	return PyBool_FromLong(direct && stride > 0 && direct_find_memory(result, (size_t)stride, direct, v, (size_t)n));
}

/* How the file is to be: keywords, all of which must be there. base_us: None = when the recording began. */
static int read_form(PyObject *keywords, struct writing *w)
{
	static char *names[] = {"head", "tail", "base_us", "pid", "shapes", "stacks", "flops", "device_times", NULL};
	PyObject *positional = PyTuple_New(0), *base = Py_None;
	int ok = positional && PyArg_ParseTupleAndKeywords(positional, keywords, "ssOlpppp", names, &w->head, &w->tail, &base, &w->pid, &w->shapes,
	                                                   &w->stacks, &w->flops, &w->device_times);
	Py_XDECREF(positional);
	if (!ok)
		return -1;
	w->base_us = INT64_MIN;
	if (base == Py_None)
		return 0;
	w->base_us = PyLong_AsLongLong(base);
	return w->base_us == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *py_write_direct(PyObject *module, PyObject *args, PyObject *keywords)
{
	PyObject *result;
	Py_ssize_t stride;
	int fd;
	struct result_source s;
	struct writing w = {0};
	(void)module;
	if (!PyArg_ParseTuple(args, "Oni", &result, &stride, &fd) || read_form(keywords, &w) < 0)
		return NULL;
	if (!direct || !direct_source(direct, result, (size_t)stride, &s)) {
		PyErr_SetString(PyExc_RuntimeError, "this recording does not lie in memory as was expected");
		return NULL;
	}
	return write_trace(&s, &w, fd);
}

static PyObject *py_write_events(PyObject *module, PyObject *args, PyObject *keywords)
{
	PyObject *events;
	long long start_us;
	int fd;
	struct result_source s;
	struct writing w = {0};
	(void)module;
	if (!PyArg_ParseTuple(args, "OLi", &events, &start_us, &fd) || read_form(keywords, &w) < 0 || getters_source(events, start_us, &s) < 0)
		return NULL;
	return write_trace(&s, &w, fd);
}

#define FORM "*, head, tail, base_us, pid, shapes, stacks, flops, device_times"
#define WRITTEN "): (events, start_us, where the events begin and end in the file, ops with a device time that it lacks)"

static PyMethodDef methods[] = {
	{"open_direct", py_open_direct, METH_VARARGS, "open_direct(path of libtorch_cpu): whether recordings can be read as they lie in memory"},
	{"stride", py_stride, METH_VARARGS, "stride(result, n): bytes of an event of a result that has n; 0 = not known"},
	{"find_memory", py_find_memory, METH_VARARGS,
	 "find_memory(result, stride, [(address, bytes, total allocated, total reserved), ...]): whether it was found where allocations have these"},
	{"write_direct", (PyCFunction)(void (*)(void))py_write_direct, METH_VARARGS | METH_KEYWORDS, "write_direct(result, stride, fd, " FORM WRITTEN},
	{"write_events", (PyCFunction)(void (*)(void))py_write_events, METH_VARARGS | METH_KEYWORDS, "write_events(events, start_us, fd, " FORM WRITTEN},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "opscope._profiler", .m_doc = "Recordings of torch's profiler as traces; schedules.", .m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__profiler(void);
PyMODINIT_FUNC PyInit__profiler(void)
{
	PyObject *module = PyModule_Create(&definition);
	if (!module)
		return NULL;
	if (PyModule_AddFunctions(module, schedule_methods) < 0 || schedule_add_types(module) < 0) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
