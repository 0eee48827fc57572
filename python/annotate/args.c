/* A call's arguments. First they are told in words (shapes, types, values), by which a text that was made before is found again; only for a
 * combination that was never seen is the text made. The text is PyProf's argument marker:
 *   {'mod': 'torch', 'op': 'add', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}, ...]}
 * A tensor without dimensions stays one: its value would have to be fetched from the device. A list of tensors is one argument in our own form,
 *   {'name': '', 'type': 'tensors', 'shapes': [(2,), (3,)], 'dtypes': ['float32', 'float32']}
 * and, as PyProf has it, as many arguments in its form. */
#include "annotate.h"

#include <math.h>

enum {
	WORDS_MOST = 768,    /* of a call; one that has more is told without its arguments */
	DEPTH_MOST = 4,      /* lists in lists */
	ITEMS_MOST = 64,     /* of a list of numbers whose values are told */
	TEXTS_FULL = 256,    /* of a function: from then on without the values of numbers, which may be others in each step */
	TEXTS_MOST = 1 << 14,
};

PyTypeObject *tensor_type;

enum kind { KIND_OTHER, KIND_NONE, KIND_BOOL, KIND_INT, KIND_FLOAT, KIND_STR, KIND_TENSOR, KIND_ARRAY, KIND_VALUES, KIND_LIST };

static enum kind scalar_kind(PyObject *o)
{
	PyTypeObject *t = Py_TYPE(o);
	return t == &PyLong_Type ? KIND_INT : t == &PyFloat_Type ? KIND_FLOAT : t == &PyBool_Type ? KIND_BOOL : o == Py_None ? KIND_NONE :
	       t == &PyUnicode_Type ? KIND_STR : KIND_OTHER;
}

static bool is_sequence(PyObject *o) { return PyTuple_Check(o) || PyList_Check(o); }

static enum kind kind_of(PyObject *o)
{
	enum kind k = scalar_kind(o);
	if (k != KIND_OTHER)
		return k;
	if (is_tensor(o))
		return KIND_TENSOR;
	if (is_sequence(o))
		return !PySequence_Fast_GET_SIZE(o) || scalar_kind(PySequence_Fast_GET_ITEM(o, 0)) != KIND_OTHER ? KIND_VALUES : KIND_LIST;
	return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0 ? KIND_ARRAY : KIND_OTHER;
}

/* ---- shape and dtype ---- */

/* `name` of the tensor, by the descriptor itself where there is one. */
static PyObject *attribute(PyObject *o, const char *name, PyObject **descriptor)
{
	if (tensor_type && !*descriptor) {
		*descriptor = PyObject_GetAttrString((PyObject *)tensor_type, name);
		if (!*descriptor)
			PyErr_Clear();
	}
	PyObject *d = *descriptor, *value;
	if (d && Py_TYPE(d) == &PyGetSetDescr_Type && is_tensor(o))
		value = ((PyGetSetDescrObject *)d)->d_getset->get(o, ((PyGetSetDescrObject *)d)->d_getset->closure);
	else
		value = PyObject_GetAttrString(o, name);
	if (!value)
		PyErr_Clear();
	return value;
}

/* New references, or NULL. A shape is a tuple. */
static PyObject *shape_of(PyObject *o)
{
	static PyObject *descriptor;
	PyObject *shape = attribute(o, "shape", &descriptor);
	if (shape && !PyTuple_Check(shape))
		Py_CLEAR(shape);
	return shape;
}

static PyObject *dtype_of(PyObject *o)
{
	static PyObject *descriptor;
	return attribute(o, "dtype", &descriptor);
}

/* -1: not a plain number, as while a program is being traced. */
static int64_t size_at(PyObject *shape, Py_ssize_t i)
{
	PyObject *size = PyTuple_GET_ITEM(shape, i);
	if (!PyLong_CheckExact(size))
		return -1;
	long long v = PyLong_AsLongLong(size);
	if (v == -1 && PyErr_Occurred())
		PyErr_Clear();
	return v;
}

/* ---- in words ---- */

struct words {
	uint64_t v[WORDS_MOST];
	uint32_t n;
	bool over, values;
};

static void word(struct words *s, uint64_t v)
{
	if (s->n < WORDS_MOST)
		s->v[s->n++] = v;
	else
		s->over = true;
}

static void sign_number(struct words *s, PyObject *o, enum kind k)
{
	int overflow = 0;
	union { double d; uint64_t u; } v = {.u = 0};
	if (k == KIND_FLOAT)
		v.d = PyFloat_AS_DOUBLE(o);
	else if (k == KIND_STR)
		v.u = (uint64_t)PyObject_Hash(o);
	else
		v.u = (uint64_t)PyLong_AsLongLongAndOverflow(o, &overflow);
	word(s, overflow ? (uint64_t)PyObject_Hash(o) : v.u);
}

static void sign_sized(struct words *s, PyObject *o, enum kind k)
{
	PyObject *shape = shape_of(o), *dtype = shape ? dtype_of(o) : NULL;
	Py_ssize_t n = shape ? PyTuple_GET_SIZE(shape) : 0;
	word(s, (uint64_t)k | (uint64_t)n << 8);
	for (Py_ssize_t i = 0; i < n; i++)
		word(s, (uint64_t)size_at(shape, i));
	/* An array's type is made anew each time it is asked for; there are not many that are equal. */
	word(s, !dtype ? 0 : k == KIND_TENSOR ? (uint64_t)(uintptr_t)dtype : (uint64_t)PyObject_Hash(dtype));
	if (PyErr_Occurred())
		PyErr_Clear();
	Py_XDECREF(shape);
	Py_XDECREF(dtype);
}

static void sign(struct words *s, PyObject *o, unsigned depth)
{
	enum kind k = kind_of(o);
	switch (k) {
	case KIND_OTHER:
		break;
	case KIND_NONE:
		word(s, k);
		break;
	case KIND_BOOL:
		word(s, k | (uint64_t)(o == Py_True) << 8);
		break;
	case KIND_INT:
	case KIND_FLOAT:
	case KIND_STR:
		word(s, k);
		if (s->values)
			sign_number(s, o, k);
		break;
	case KIND_TENSOR:
	case KIND_ARRAY:
		sign_sized(s, o, k);
		break;
	case KIND_VALUES:
	case KIND_LIST: {
		Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
		word(s, (uint64_t)k | (uint64_t)PyTuple_Check(o) << 8 | (uint64_t)n << 16);
		for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(o) && depth < DEPTH_MOST; i++)
			sign(s, PySequence_Fast_GET_ITEM(o, i), depth + 1);
		break;
	}
	}
}

static void sign_call(struct words *s, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
	Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
	for (Py_ssize_t i = 0; i < n; i++)
		sign(s, args[i], 0);
	for (Py_ssize_t i = 0; i < named; i++) {
		word(s, (uint64_t)PyObject_Hash(PyTuple_GET_ITEM(kwnames, i)));
		sign(s, args[n + i], 0);
	}
}

/* ---- as text ---- */

struct marker {
	struct line line;
	unsigned args;
	bool values, ids;
};

static void begin_arg(struct marker *m, PyObject *name, PyObject *maker_of, const char *type)
{
	const struct text *functions = maker_of && m->ids ? calls_name_of(calls_maker(maker_of)) : NULL;
	line_put(&m->line, m->args++ ? ", {'name': " : "{'name': ");
	if (maker_of && m->ids) {
		line_put(&m->line, "'");
		line_put(&m->line, functions ? functions->p : "");
		line_put(&m->line, "'");
	} else if (!name || !line_repr(&m->line, name))
		line_put(&m->line, "''");
	line_put(&m->line, ", 'type': '");
	line_put(&m->line, type);
	line_put(&m->line, "'");
}

/* "float32", of the object's dtype; NULL when it has none. The text lives as long as *keep. */
static const char *type_name(PyObject *o, PyObject **keep)
{
	PyObject *dtype = dtype_of(o);
	*keep = dtype ? PyObject_Str(dtype) : NULL;
	Py_XDECREF(dtype);
	const char *type = *keep ? PyUnicode_AsUTF8(*keep) : NULL, *dot = type ? strrchr(type, '.') : NULL;
	PyErr_Clear();
	return dot ? dot + 1 : type;
}

static void put_shape(struct marker *m, PyObject *shape)
{
	Py_ssize_t n = PyTuple_GET_SIZE(shape);
	line_put(&m->line, "(");
	for (Py_ssize_t i = 0; i < n; i++)
		line_format(&m->line, "%s%lld", i ? ", " : "", (long long)size_at(shape, i));
	line_put(&m->line, n == 1 ? ",)" : ")");
}

static void put_sized(struct marker *m, PyObject *name, PyObject *o, enum kind k)
{
	PyObject *shape = shape_of(o), *keep = NULL;
	const char *type = shape ? type_name(o, &keep) : NULL;
	if (type) {
		begin_arg(m, name, k == KIND_TENSOR ? o : NULL, k == KIND_TENSOR ? "tensor" : "ndarray");
		line_put(&m->line, ", 'shape': ");
		put_shape(m, shape);
		line_put(&m->line, ", 'dtype': '");
		line_put(&m->line, type);
		line_put(&m->line, "'}");
	}
	Py_XDECREF(keep);
	Py_XDECREF(shape);
}

static bool are_tensors(PyObject *list)
{
	Py_ssize_t n = PySequence_Fast_GET_SIZE(list), i = 0;
	while (i < n && is_tensor(PySequence_Fast_GET_ITEM(list, i)))
		i++;
	return n && i == n;
}

static void put_tensors(struct marker *m, PyObject *name, PyObject *list)
{
	begin_arg(m, name, NULL, "tensors");
	for (int types = 0; types < 2; types++) {
		line_put(&m->line, types ? "], 'dtypes': [" : ", 'shapes': [");
		for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
			PyObject *one = PySequence_Fast_GET_ITEM(list, i), *keep = NULL;
			PyObject *shape = types ? NULL : shape_of(one);
			line_put(&m->line, i ? ", " : "");
			if (types) {
				const char *type = type_name(one, &keep);
				line_put(&m->line, "'");
				line_put(&m->line, type ? type : "");
				line_put(&m->line, "'");
			} else if (shape) {
				put_shape(m, shape);
			} else {
				line_put(&m->line, "()");
			}
			Py_XDECREF(keep);
			Py_XDECREF(shape);
		}
	}
	line_put(&m->line, "]}");
}

static void put_scalar(struct marker *m, PyObject *name, PyObject *o, enum kind k)
{
	begin_arg(m, name, NULL, Py_TYPE(o)->tp_name);
	double v = k == KIND_FLOAT ? PyFloat_AS_DOUBLE(o) : 0;
	bool number = k == KIND_INT || k == KIND_FLOAT || k == KIND_STR;
	if (!m->values && number) {
		line_put(&m->line, "}");
		return;
	}
	line_put(&m->line, ", 'value': ");
	if (isnan(v) || isinf(v))
		line_put(&m->line, isnan(v) ? "'nan'" : v > 0 ? "'inf'" : "'-inf'");
	else if (!line_repr(&m->line, o))
		line_put(&m->line, "None");
	line_put(&m->line, "}");
}

static void put_values(struct marker *m, PyObject *name, PyObject *list)
{
	Py_ssize_t n = PySequence_Fast_GET_SIZE(list), plain = 0;
	bool tuple = PyTuple_Check(list);
	while (plain < n && scalar_kind(PySequence_Fast_GET_ITEM(list, plain)) != KIND_OTHER)
		plain++;
	begin_arg(m, name, NULL, tuple ? "tuple" : "list");
	/* What else may be among them would be printed with its values. */
	if (plain == n && m->values && (n <= ITEMS_MOST || settings.format != FORMAT_OWN)) {
		line_put(&m->line, tuple ? ", 'value': (" : ", 'value': [");
		for (Py_ssize_t i = 0; i < n; i++) {
			line_put(&m->line, i ? ", " : "");
			line_repr(&m->line, PySequence_Fast_GET_ITEM(list, i));
		}
		line_put(&m->line, !tuple ? "]" : n == 1 ? ",)" : ")");
	}
	line_put(&m->line, "}");
}

static void put(struct marker *m, PyObject *name, PyObject *o, unsigned depth)
{
	enum kind k = kind_of(o);
	switch (k) {
	case KIND_OTHER:
		break;
	case KIND_NONE:
	case KIND_BOOL:
	case KIND_INT:
	case KIND_FLOAT:
	case KIND_STR:
		put_scalar(m, name, o, k);
		break;
	case KIND_TENSOR:
	case KIND_ARRAY:
		put_sized(m, name, o, k);
		break;
	case KIND_VALUES:
		put_values(m, name, o);
		break;
	case KIND_LIST:
		if (settings.format == FORMAT_OWN && are_tensors(o)) {
			put_tensors(m, name, o);
			break;
		}
		for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o) && depth < DEPTH_MOST; i++)
			put(m, name, PySequence_Fast_GET_ITEM(o, i), depth + 1);
		break;
	}
}

static void put_ids(struct marker *m, PyObject *const *args, Py_ssize_t n, int64_t call)
{
	int64_t made[64];
	int some = calls_inputs(args, n, made, 64);
	line_format(&m->line, ", 'callid': %lld, 'input_callids': [", (long long)call);
	for (int i = 0; i < some; i++)
		line_format(&m->line, "%s%lld", i ? ", " : "", (long long)made[i]);
	line_put(&m->line, "]");
}

static void put_module(struct line *l, const struct wrapper *w)
{
	line_put(l, "{'mod': '");
	line_put(l, w->module);
	line_put(l, "'");
}

static struct text *marker(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, bool values, int64_t call)
{
	struct marker m = {.values = values, .ids = call >= 0};
	Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
	put_module(&m.line, w);
	line_put(&m.line, ", 'op': '");
	line_put(&m.line, w->op);
	line_put(&m.line, "'");
	if (call >= 0)
		put_ids(&m, args, n, call);
	line_put(&m.line, ", 'args': [");
	for (Py_ssize_t i = 0; i < n; i++)
		put(&m, NULL, args[i], 0);
	for (Py_ssize_t i = 0; i < named; i++)
		put(&m, PyTuple_GET_ITEM(kwnames, i), args[n + i], 0);
	line_put(&m.line, "]}");
	return line_text(&m.line);
}

const struct text *args_text(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
	struct words s;
	s.n = 0;
	s.over = false;
	s.values = w->texts.n < TEXTS_FULL || settings.format != FORMAT_OWN;
	word(&s, s.values);
	sign_call(&s, args, n, kwnames);
	bool told = !s.over && !PyErr_Occurred();
	if (!told || w->texts.n >= TEXTS_MOST) {
		PyErr_Clear();
		told = told && table_find(&w->texts, s.v, s.n, hash_words(s.v, s.n));
		s.n = told ? s.n : 0;
	}
	uint64_t hash = hash_words(s.v, s.n);
	struct text *t = table_find(&w->texts, s.v, s.n, hash);
	if (LIKELY(t))
		return t;
	t = s.n ? marker(w, args, n, kwnames, s.values, -1) : marker(w, NULL, 0, NULL, true, -1);
	if (t && !table_add(&w->texts, s.v, s.n, hash, t)) {
		text_free(t);
		t = NULL;
	}
	return t;
}

struct text *args_text_with_ids(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t call)
{
	return marker(w, args, n, kwnames, true, call);
}

struct text *args_module_text(struct wrapper *w, PyObject *self)
{
	PyObject *repr = PyObject_CallMethod(self, "extra_repr", NULL);
	struct line l = {NULL, 0, 0};
	put_module(&l, w);
	line_put(&l, ", 'strRepr': ");
	if (!repr || !line_repr(&l, repr))
		line_put(&l, "''");
	PyErr_Clear();
	Py_XDECREF(repr);
	line_put(&l, "}");
	return line_text(&l);
}
