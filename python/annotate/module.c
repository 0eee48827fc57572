/* What opscope/torch.py calls. */
#include "annotate.h"

static PyObject *listener(PyObject *self, PyObject *unused)
{
	static const char *const name[] = {[LISTENER_NONE] = "none", [LISTENER_NVTX] = "nvtx", [LISTENER_OPSCOPE] = "opscope"};
	return PyUnicode_FromString(name[sink_listener()]);
}

static PyObject *no_format(const char *name)
{
	PyObject *names = format_names();
	if (names)
		PyErr_Format(PyExc_ValueError, "there is no format '%s': %R", name, names);
	Py_XDECREF(names);
	return NULL;
}

static PyObject *configure(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"tensor", "format", "stacks", "function_stacks", "call_ids", "layers", "links", "leave_out", NULL};
	struct settings s = {.on = settings.on};
	const char *format;
	PyObject *tensor, *folder = NULL;
	int stacks, functions, ids, layers, links;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!sppppp|U", names, &PyType_Type, &tensor, &format, &stacks, &functions, &ids, &layers, &links,
	                                 &folder))
		return NULL;
	s.format = format_named(format);
	if (!s.format)
		return no_format(format);
	if (!args_tensors_are((PyTypeObject *)tensor))
		return NULL;
	stack_leave_out(folder);
	s.stacks = stacks;
	s.function_stacks = functions;
	s.call_ids = ids;
	s.layers = layers;
	s.links = links;
	settings = s;
	Py_RETURN_NONE;
}

/* enable(on) -> what it was */
static PyObject *enable(PyObject *self, PyObject *on)
{
	bool was = settings.on;
	int yes = PyObject_IsTrue(on);
	if (yes < 0)
		return NULL;
	settings.on = yes;
	return PyBool_FromLong(was);
}

/* quiet(on) -> what it was, of this thread. Python's ranges begin and end under the same. */
static PyObject *quiet(PyObject *self, PyObject *on)
{
	bool was = thread_self.quiet;
	int yes = PyObject_IsTrue(on);
	if (yes < 0)
		return NULL;
	thread_self.busy = thread_self.quiet = yes;
	return PyBool_FromLong(was);
}

static PyObject *layer_method(PyObject *self, PyObject *args)
{
	PyObject *made = PyObject_Call((PyObject *)wrapper_method_type, args, NULL);
	if (made)
		wrapper_is_layer((struct wrapper *)made);
	return made;
}

static PyObject *push(PyObject *self, PyObject *text)
{
	Py_ssize_t n;
	const char *p = PyUnicode_AsUTF8AndSize(text, &n);
	if (!p)
		return NULL;
	if (!thread_self.quiet)
		sink_push(&(struct text){.p = (char *)p, .n = (uint32_t)strlen(p)});
	Py_RETURN_NONE;
}

static PyObject *pop(PyObject *self, PyObject *unused)
{
	if (!thread_self.quiet)
		sink_pop();
	Py_RETURN_NONE;
}

/* As captures say it themselves of what was open at their end (SPAN_CUT_KEY): a step of that kind counts in no mean. */
static PyObject *cut(PyObject *self, PyObject *unused)
{
	static char value[] = "not to its end";
	sink_arg_text("Recorded", &(struct text){.p = value, .n = sizeof value - 1});
	Py_RETURN_NONE;
}

/* The key is the one that opscope.profile writes into torch's recordings (python/opscope/_ranges.py). */
static PyObject *range_args(PyObject *self, PyObject *text)
{
	const char *p = PyUnicode_AsUTF8(text);
	if (!p)
		return NULL;
	if (!thread_self.quiet)
		sink_arg_text("Record function args", &(struct text){.p = (char *)p, .n = (uint32_t)strlen(p)});
	Py_RETURN_NONE;
}

static PyObject *start(PyObject *self, PyObject *text)
{
	const char *p = PyUnicode_AsUTF8(text);
	return p ? PyLong_FromUnsignedLongLong(sink_start(&(struct text){.p = (char *)p, .n = (uint32_t)strlen(p)})) : NULL;
}

static PyObject *end(PyObject *self, PyObject *number)
{
	unsigned long long range = PyLong_AsUnsignedLongLong(number);
	if (range == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	sink_end(range);
	Py_RETURN_NONE;
}

static PyObject *count_open(PyObject *self, PyObject *unused) { return PyLong_FromUnsignedLong(thread_self.open); }

static PyObject *leaving(PyObject *self, PyObject *unused)
{
	sink_leaving();
	Py_RETURN_NONE;
}

static PyObject *begin_backward(PyObject *self, PyObject *unused) { return PyBool_FromLong(!thread_self.quiet && backward_begin()); }

static PyObject *end_backward(PyObject *self, PyObject *was_in_node)
{
	if (!thread_self.quiet)
		backward_end(was_in_node == Py_True);
	Py_RETURN_NONE;
}

static PyObject *text_or_none(const struct text *t)
{
	if (t)
		return PyUnicode_FromStringAndSize(t->p, t->n);
	Py_RETURN_NONE;
}

static PyObject *stack(PyObject *self, PyObject *unused)
{
	struct stack *s = stack_now();
	return text_or_none(s ? stack_lines(s) : NULL);
}

static PyObject *trace_marker(PyObject *self, PyObject *op)
{
	PyObject *name = PyUnicode_Check(op) ? op : NULL;
	struct stack *s = name ? stack_now() : NULL;
	const char *p = s ? PyUnicode_AsUTF8(name) : NULL;
	return text_or_none(p ? stack_marker(s, p) : NULL);
}

static PyObject *copy_to(PyObject *self, PyObject *list)
{
	if (list != Py_None && !PyList_Check(list)) {
		PyErr_SetString(PyExc_TypeError, "a list, or None");
		return NULL;
	}
	sink_copy(list == Py_None ? NULL : list);
	Py_RETURN_NONE;
}

static PyObject *forget(PyObject *self, PyObject *unused)
{
	layer_forget();
	Py_RETURN_NONE;
}

static PyObject *formats(PyObject *self, PyObject *unused) { return format_names(); }
static PyObject *left_out(PyObject *self, PyObject *unused) { return limits_reached(); }

#ifndef OPSCOPE_LIBDIR
#define OPSCOPE_LIBDIR "" /* it is not known where the library will be */
#endif

static PyMethodDef methods[] = {
	{"listener", listener, METH_NOARGS, "Who listens: 'opscope' (opscope record), 'nvtx' (another tool), 'none'."},
	{"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS, "What is written, and how."},
	{"formats", formats, METH_NOARGS, "The names of the forms in which calls are written down, our own first."},
	{"left_out", left_out, METH_NOARGS, "{what was left out, a sentence: how often} since this was asked last."},
	{"overrides", (PyCFunction)(void (*)(void))overrides, METH_VARARGS | METH_KEYWORDS, "How what tensors are asked is hidden from programs that would hear of it."},
	{"enable", enable, METH_O, "Whether calls are written; returns what it was."},
	{"quiet", quiet, METH_O, "Whether calls and ranges on this thread are left out; returns what it was. Ranges begin and end under the same."},
	{"layer_method", layer_method, METH_VARARGS, "layer_method(function, owner, name): the wrapper of nn.Module.__call__."},
	{"push", push, METH_O, "Begins a range of this text."},
	{"pop", pop, METH_NOARGS, "Ends the range that was begun last on this thread."},
	{"cut", cut, METH_NOARGS, "Says of the range that was begun last on this thread that it ends with what records it, not of its own."},
	{"range_args", range_args, METH_O, "Says of the range that was begun last on this thread what the program gave it beside its name."},
	{"start", start, METH_O, "Begins a range of this text that need not nest; its number."},
	{"end", end, METH_O, "Ends the range of this number, on any thread."},
	{"open", count_open, METH_NOARGS, "How many ranges were pushed on this thread and not popped."},
	{"leaving", leaving, METH_NOARGS, "The process is about to leave by os._exit(), and was not killed."},
	{"begin_backward", begin_backward, METH_NOARGS, "Before a call of backward(); what it returns is for end_backward."},
	{"end_backward", end_backward, METH_O, "After it."},
	{"stack", stack, METH_NOARGS, "Where the caller stands: frames, innermost first."},
	{"trace_marker", trace_marker, METH_O, "The trace marker that a call of this op would have here."},
	{"copy_to", copy_to, METH_O, "Appends all that is written to this list too; None: no more."},
	{"forget", forget, METH_NOARGS, "Forgets the names of modules."},
	{"capture_begin", capture_begin, METH_VARARGS, "capture_begin(library, folder, max_bytes, ring): this process records itself, into a segment in the folder."},
	{"capture_end", capture_end, METH_NOARGS, "Ends that."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "opscope._annotate", "What the calls of a PyTorch program are told to whoever records it; opscope.torch uses it.", -1, methods,
	NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__annotate(void); /* the import calls it by its name */
PyMODINIT_FUNC PyInit__annotate(void)
{
	PyObject *module = PyModule_Create(&definition);
	if (module && (wrapper_ready(module) < 0 || backward_ready(module) < 0 || PyModule_AddStringConstant(module, "library_folder", OPSCOPE_LIBDIR) < 0))
		Py_CLEAR(module);
	return module;
}
