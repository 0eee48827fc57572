/* What stands where a function of torch stood. It looks like that function to all who ask: names, signature, equality, pickling; only its type is
 * another one. There are two types since functions written in Python become methods of classes that hold them, and built-in ones do not. */
#include "annotate.h"

#include <structmember.h>

PyTypeObject *wrapper_function_type, *wrapper_method_type;
struct settings settings = {.format = &format_own};
__thread struct thread thread_self;

static int64_t calls;   /* numbers begin at 1: 0 is what torch before 1.8 gave to all nodes of the backward pass */

/* ---- a call ---- */

static PyObject *plain_call(struct wrapper *w, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
	return PyObject_Vectorcall(w->function, args, nargs, kwnames);
}

static void tell_before(struct wrapper *w)
{
	PyObject *before = w->before;
	w->before = NULL;
	PyObject *result = PyObject_CallNoArgs(before);
	if (!result)
		error_clear();
	Py_XDECREF(result);
	Py_DECREF(before);
}

/* Returns the result, or NULL where there is none. */
static PyObject *end_call(struct wrapper *w, PyObject *result, int64_t number, int ranges)
{
	struct thread *t = &thread_self;
	PyObject *type, *value, *trace;
	t->busy = true;
	if (result && settings.links) {
		overrides_begin();
		backward_link(w, result, number);
		overrides_end();
	}
	if (result && settings.call_ids)
		calls_made(result, number);
	t->busy = false;
	if (UNLIKELY(t->error.type != NULL)) {
		Py_CLEAR(result);
		error_raise();
	}
	if (UNLIKELY(!result))
		PyErr_Fetch(&type, &value, &trace);
	while (ranges-- > 0)
		sink_pop();
	if (UNLIKELY(!result))
		PyErr_Restore(type, value, trace);
	return result;
}

static PyObject *wrapper_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
	struct wrapper *w = (struct wrapper *)self;
	struct thread *t = &thread_self;
	if (!settings.on || t->busy || !sink_wanted())
		return plain_call(w, args, nargs, kwnames);
	if (settings.format->one_range_an_op && w->same_op && t->call && t->call->op == w->op)
		return plain_call(w, args, nargs, kwnames);
	Py_INCREF(self); /* may be taken out of its place, and given back, by what it calls */
	int64_t number = ++calls;
	t->busy = true;
	if (UNLIKELY(w->before != NULL))
		tell_before(w);
	overrides_begin();
	if (settings.links)
		backward_inputs(args, PyVectorcall_NARGS(nargs) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
	int ranges = settings.format->begin(w, args, PyVectorcall_NARGS(nargs), kwnames, number);
	overrides_end();
	t->busy = false;
	struct open_call call = {w->same_op ? w->op : NULL, t->call, number};
	t->call = &call;
	PyObject *result = UNLIKELY(error_raise()) ? NULL : plain_call(w, args, nargs, kwnames);
	t->call = call.around;
	result = end_call(w, result, number, ranges);
	Py_DECREF(self);
	return result;
}

static PyObject *layer_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
	struct open_layer layer;
	int begun = PyVectorcall_NARGS(nargs) ? layer_begin(&layer, args[0]) : 0;
	if (UNLIKELY(begun < 0))
		return NULL;
	if (!begun)
		return plain_call((struct wrapper *)self, args, nargs, kwnames);
	PyObject *result = plain_call((struct wrapper *)self, args, nargs, kwnames);
	layer_end(&layer);
	return result;
}

void wrapper_is_layer(struct wrapper *w) { w->call = layer_call; }

/* ---- the object ---- */

static int wrapper_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct wrapper *w = (struct wrapper *)self;
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(w->function);
	Py_VISIT(w->owner);
	Py_VISIT(w->before);
	return 0;
}

static int wrapper_clear(PyObject *self)
{
	struct wrapper *w = (struct wrapper *)self;
	Py_CLEAR(w->function);
	Py_CLEAR(w->owner);
	Py_CLEAR(w->before);
	return 0;
}

static void wrapper_dealloc(PyObject *self)
{
	struct wrapper *w = (struct wrapper *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	if (w->weakrefs)
		PyObject_ClearWeakRefs(self);
	wrapper_clear(self);
	Py_CLEAR(w->name);
	for (uint32_t i = 0; i < w->texts.cap; i++)
		if (w->texts.slot[i].hash) {
			text_free(w->texts.slot[i].value);
			PyMem_Free(w->texts.slot[i].key);
		}
	PyMem_Free(w->texts.slot);
	text_free(w->bare);
	PyMem_Free(w->module);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *wrapper_bind(PyObject *self, PyObject *object, PyObject *type)
{
	if (!object || object == Py_None) {
		Py_INCREF(self);
		return self;
	}
	return PyMethod_New(self, object);
}

/* Names that are answered by the wrapper itself. */
static bool is_own_name(PyObject *name)
{
	static const char *const own[] = {"__class__", "__wrapped__", "__reduce_ex__", "__copy__", "__deepcopy__", "__call__", "__get__", "__eq__", "__ne__", "__hash__"};
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0)
			return true;
	return false;
}

/* pickle looks the object up by its module. */
static PyObject *wrapper_module_name(struct wrapper *w)
{
	PyObject *name = PyModule_Check(w->owner) ? PyModule_GetNameObject(w->owner) : PyObject_GetAttrString(w->owner, "__module__");
	if (!name) {
		PyErr_Clear();
		name = PyObject_GetAttrString(w->function, "__module__");
	}
	return name;
}

static PyObject *wrapper_getattro(PyObject *self, PyObject *name)
{
	struct wrapper *w = (struct wrapper *)self;
	if (!w->function || is_own_name(name))
		return PyObject_GenericGetAttr(self, name);
	if (PyUnicode_CompareWithASCIIString(name, "__module__") == 0)
		return wrapper_module_name(w);
	PyObject *found = PyObject_GetAttr(w->function, name);
	if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return found;
	PyErr_Clear();
	return PyObject_GenericGetAttr(self, name);
}

static int wrapper_setattro(PyObject *self, PyObject *name, PyObject *value)
{
	return PyObject_SetAttr(((struct wrapper *)self)->function, name, value);
}

static PyObject *wrapper_repr(PyObject *self) { return PyObject_Repr(((struct wrapper *)self)->function); }
static Py_hash_t wrapper_hash(PyObject *self) { return PyObject_Hash(((struct wrapper *)self)->function); }

static PyObject *unwrapped(PyObject *o)
{
	return Py_TYPE(o) == wrapper_function_type || Py_TYPE(o) == wrapper_method_type ? ((struct wrapper *)o)->function : o;
}

/* A table that knows torch.add knows the wrapper, and the other way round. */
static PyObject *wrapper_compare(PyObject *self, PyObject *other, int op)
{
	if (op != Py_EQ && op != Py_NE)
		Py_RETURN_NOTIMPLEMENTED;
	return PyObject_RichCompare(unwrapped(self), unwrapped(other), op);
}

static PyObject *reduced_to(const char *module, const char *function, PyObject *args)
{
	PyObject *m = args ? PyImport_ImportModule(module) : NULL, *f = m ? PyObject_GetAttrString(m, function) : NULL;
	Py_XDECREF(m);
	if (!f)
		Py_CLEAR(args);
	return f ? Py_BuildValue("(NN)", f, args) : NULL;
}

/* As the function itself is pickled, so that who reads it needs nothing of ours, and who allows that allows this. A name alone ("relu", of
 * "torch.nn.functional") says what stands at that place; when that is the wrapper no more, the function is what is written. */
static PyObject *wrapper_reduce(PyObject *self, PyObject *protocol)
{
	struct wrapper *w = (struct wrapper *)self;
	if (PyFunction_Check(w->function) && PyType_Check(w->owner))
		return reduced_to("builtins", "getattr", PyTuple_Pack(2, w->owner, w->name));
	if (!PyFunction_Check(w->function)) {
		PyObject *as = PyObject_CallMethod(w->function, "__reduce_ex__", "O", protocol);
		if (!as || !PyUnicode_Check(as))
			return as;
		Py_DECREF(as);
	}
	PyObject *there = PyObject_GetAttr(w->owner, w->name);
	PyErr_Clear();
	Py_XDECREF(there);
	if (there == self) {
		Py_INCREF(w->name);
		return w->name;
	}
	return reduced_to("copy", "copy", PyTuple_Pack(1, w->function));
}

/* Functions are not copied. */
static PyObject *wrapper_copy(PyObject *self, PyObject *unused)
{
	Py_INCREF(self);
	return self;
}

static PyMethodDef wrapper_methods[] = {
	{"__reduce_ex__", wrapper_reduce, METH_O, NULL},
	{"__copy__", wrapper_copy, METH_NOARGS, NULL},
	{"__deepcopy__", wrapper_copy, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef wrapper_members[] = {
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct wrapper, call), READONLY, NULL},
	{"__weaklistoffset__", T_PYSSIZET, offsetof(struct wrapper, weakrefs), READONLY, NULL},
	{"__wrapped__", T_OBJECT_EX, offsetof(struct wrapper, function), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};

static char *module_name(PyObject *owner)
{
	PyObject *name = PyObject_GetAttrString(owner, "__name__");
	const char *p = name ? PyUnicode_AsUTF8(name) : NULL;
	char *copy = NULL;
	if (p && (copy = PyMem_Malloc(strlen(p) + 1)) != NULL)
		strcpy(copy, p);
	else if (p)
		PyErr_NoMemory();
	Py_XDECREF(name);
	return copy;
}

/* wrapper(function, owner, name, before=None) */
static PyObject *wrapper_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *function, *owner, *name, *before = Py_None;
	if (!PyArg_ParseTuple(args, "OOU|O", &function, &owner, &name, &before) || !PyUnicode_AsUTF8(name))
		return NULL;
	struct wrapper *w = (struct wrapper *)type->tp_alloc(type, 0);
	if (!w)
		return NULL;
	w->call = wrapper_call;
	Py_INCREF(name);
	PyUnicode_InternInPlace(&name);
	w->name = name;
	w->op = PyUnicode_AsUTF8(name);
	w->module = module_name(owner);
	Py_INCREF(function);
	w->function = function;
	Py_INCREF(owner);
	w->owner = owner;
	if (before != Py_None) {
		Py_INCREF(before);
		w->before = before;
	}
	if (!w->op || !w->module) {
		Py_DECREF(w);
		return NULL;
	}
	w->has_repr = strcmp(w->op, "forward") == 0 && PyType_Check(owner) && PyObject_HasAttrString(owner, "extra_repr");
	w->same_op = PyModule_Check(owner) || (tensor_type && PyType_Check(owner) && PyType_IsSubtype((PyTypeObject *)owner, tensor_type));
	return (PyObject *)w;
}

#define COMMON_SLOTS                                                                                          \
	{Py_tp_new, wrapper_new}, {Py_tp_dealloc, wrapper_dealloc}, {Py_tp_traverse, wrapper_traverse}, {Py_tp_clear, wrapper_clear}, \
	{Py_tp_call, PyVectorcall_Call}, {Py_tp_getattro, wrapper_getattro}, {Py_tp_setattro, wrapper_setattro}, {Py_tp_repr, wrapper_repr}, \
	{Py_tp_hash, wrapper_hash}, {Py_tp_richcompare, wrapper_compare}, {Py_tp_methods, wrapper_methods}, {Py_tp_members, wrapper_members}

static PyType_Slot function_slots[] = {COMMON_SLOTS, {0, NULL}};
static PyType_Slot method_slots[] = {COMMON_SLOTS, {Py_tp_descr_get, wrapper_bind}, {0, NULL}};
enum { TYPE_FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL };
static PyType_Spec function_spec = {"opscope._annotate.function", sizeof(struct wrapper), 0, TYPE_FLAGS, function_slots};
static PyType_Spec method_spec = {"opscope._annotate.method", sizeof(struct wrapper), 0, TYPE_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR, method_slots};

int wrapper_ready(PyObject *module)
{
	wrapper_function_type = (PyTypeObject *)PyType_FromSpec(&function_spec);
	wrapper_method_type = (PyTypeObject *)PyType_FromSpec(&method_spec);
	if (!wrapper_function_type || !wrapper_method_type)
		return -1;
	Py_INCREF(wrapper_function_type);
	Py_INCREF(wrapper_method_type);
	return PyModule_AddObject(module, "function", (PyObject *)wrapper_function_type) < 0 ||
	       PyModule_AddObject(module, "method", (PyObject *)wrapper_method_type) < 0 ? -1 : 0;
}
