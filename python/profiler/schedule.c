/* opscope/schedule.h for Python: actions of steps, what is to be done between two, and the step counter. */
#include "profiler.h"

#include <opscope/schedule.h>

/* `step` NULL: there is none among the arguments. */
static int read_spec(PyObject *args, struct opscope_schedule_spec *s, long long *step)
{
	long long v[6];
	if (!PyArg_ParseTuple(args, step ? "(LLLLLL)L" : "(LLLLLL)", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], step))
		return -1;
	*s = (struct opscope_schedule_spec){.wait = v[0], .warmup = v[1], .active = v[2], .repeat = v[3], .skip_first = v[4], .skip_first_wait = v[5]};
	return 0;
}

static PyObject *py_check(PyObject *module, PyObject *args)
{
	struct opscope_schedule_spec s;
	char message[256] = "";
	(void)module;
	if (read_spec(args, &s, NULL) < 0)
		return NULL;
	int rc = opscope_schedule_check(&s, message, sizeof message);
	return Py_BuildValue("is", rc, message);
}

static PyObject *py_action(PyObject *module, PyObject *args)
{
	struct opscope_schedule_spec s;
	long long step;
	char error[256];
	(void)module;
	if (read_spec(args, &s, &step) < 0)
		return NULL;
	int action = opscope_schedule(&s, step, error, sizeof error);
	if (action >= 0)
		return PyLong_FromLong(action);
	PyErr_SetString(PyExc_AssertionError, error);
	return NULL;
}

static PyObject *py_transition(PyObject *module, PyObject *args)
{
	int from, to;
	const char *warning;
	enum opscope_operation operations[4];
	(void)module;
	if (!PyArg_ParseTuple(args, "ii", &from, &to))
		return NULL;
	int n = opscope_transition(from, to, operations, &warning);
	if (n < 0) {
		PyErr_SetString(PyExc_ValueError, "no such action");
		return NULL;
	}
	PyObject *names = PyTuple_New(n), *answer;
	for (int i = 0; names && i < n; i++)
		PyTuple_SetItem(names, i, PyUnicode_FromString(opscope_operation_name(operations[i])));
	if (!names || PyErr_Occurred()) {
		Py_XDECREF(names);
		return NULL;
	}
	answer = Py_BuildValue("Nz", names, warning);
	return answer;
}

PyMethodDef schedule_methods[] = {
	{"schedule_check", py_check, METH_VARARGS, "schedule_check((wait, warmup, active, repeat, skip_first, skip_first_wait)): (0, 1 or -1, message)"},
	{"schedule_action", py_action, METH_VARARGS, "schedule_action(spec, step): number of the action"},
	{"transition", py_transition, METH_VARARGS, "transition(from, to): (names of what is to be done, warning or None)"},
	{NULL, NULL, 0, NULL},
};

struct tracker {
	PyObject_HEAD
	struct opscope_tracker *t;
};

static struct opscope_tracker *tracker_of(PyObject *self)
{
	return ((struct tracker *)(void *)self)->t;
}

static PyObject *tracker_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *self = allocate(type, 0);
	(void)args;
	(void)keywords;
	if (self)
		((struct tracker *)(void *)self)->t = opscope_tracker_new();
	return self;
}

static void tracker_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	opscope_tracker_free(tracker_of(self));
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF(type);
}

static PyObject *tracker_init(PyObject *self, PyObject *args)
{
	const char *name;
	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	opscope_tracker_init(tracker_of(self), name);
	Py_RETURN_NONE;
}

static PyObject *tracker_erase(PyObject *self, PyObject *args)
{
	const char *name;
	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	return PyBool_FromLong(opscope_tracker_erase(tracker_of(self), name));
}

static PyObject *tracker_increment(PyObject *self, PyObject *args)
{
	const char *name;
	int64_t kineto_steps = 0;
	char warning[256] = "";
	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	int64_t step = opscope_tracker_increment(tracker_of(self), name, &kineto_steps, warning, sizeof warning);
	return Py_BuildValue("LLs", (long long)step, (long long)kineto_steps, warning);
}

static PyObject *tracker_current(PyObject *self, PyObject *args)
{
	(void)args;
	return PyLong_FromLongLong(opscope_tracker_current(tracker_of(self)));
}

static PyMethodDef tracker_methods[] = {
	{"init", tracker_init, METH_VARARGS, "init(name): the requester counts from the current step on"},
	{"erase", tracker_erase, METH_VARARGS, "erase(name): whether it was there"},
	{"increment", tracker_increment, METH_VARARGS, "increment(name): (step, how often the library below is to be told, warning)"},
	{"current", tracker_current, METH_NOARGS, "the current step"},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot tracker_slots[] = {
	{Py_tp_new, (void *)tracker_new},
	{Py_tp_dealloc, (void *)tracker_dealloc},
	{Py_tp_methods, tracker_methods},
	{Py_tp_doc, (void *)(uintptr_t)"Counts steps for several requesters: the global step is the largest count."},
	{0, NULL},
};

static PyType_Spec tracker_spec = {"opscope._profiler.Tracker", sizeof(struct tracker), 0, Py_TPFLAGS_DEFAULT, tracker_slots};

int schedule_add_types(PyObject *module)
{
	PyObject *type = PyType_FromSpec(&tracker_spec);
	if (type && PyModule_AddObject(module, "Tracker", type) == 0)
		return 0;
	Py_XDECREF(type);
	return -1;
}
