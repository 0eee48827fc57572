/* A call's arguments. First they are told in words (shapes, types, values), by which a text that was made before is found again; only for a
 * combination that was never seen is the text made. The text is PyProf's argument marker:
 *   {'mod': 'torch', 'op': 'add', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}, ...]}
 * A tensor without dimensions stays one: its value would have to be fetched from the device. A list of tensors is one argument in our own form,
 *   {'name': '', 'type': 'tensors', 'shapes': [(2,), (3,)], 'dtypes': ['float32', 'float32']}
 * and, as PyProf has it, as many arguments in its form. */
#include "annotate.h"

#include <math.h>

enum {
	WORDS_FEW = 256,
	WORDS_MOST = TEXT_BYTES_MOST,   /* of a call: each is more than a byte of the text */
};

PyTypeObject *tensor_type;

enum kind { KIND_OTHER, KIND_NONE, KIND_BOOL, KIND_INT, KIND_FLOAT, KIND_STR, KIND_TENSOR, KIND_ARRAY, KIND_VALUES, KIND_LIST };

static enum kind scalar_kind(PyObject *o)
{
	PyTypeObject *t = Py_TYPE(o);
	return t == &PyLong_Type ? KIND_INT : t == &PyFloat_Type ? KIND_FLOAT : t == &PyBool_Type ? KIND_BOOL : o == Py_None ? KIND_NONE :
	       t == &PyUnicode_Type ? KIND_STR : KIND_OTHER;
}

static enum kind kind_of(PyObject *o)
{
	enum kind k = scalar_kind(o);
	if (k != KIND_OTHER)
		return k;
	if (is_tensor(o))
		return KIND_TENSOR;
	if (is_list(o))
		return !PySequence_Fast_GET_SIZE(o) || scalar_kind(PySequence_Fast_GET_ITEM(o, 0)) != KIND_OTHER ? KIND_VALUES : KIND_LIST;
	return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0 ? KIND_ARRAY : KIND_OTHER;
}

/* ---- shape and dtype ---- */

/* Its name as Python knows it, and what the type of tensors has for it: NULL = that is no getter in C. The caches of types keep the names that
 * they are asked for: another str each time would be a leak of some 4096. */
static struct attribute {
	const char *text;
	PyObject *name;
	PyGetSetDescrObject *descriptor;
} shape_name = {"shape", NULL, NULL}, dtype_name = {"dtype", NULL, NULL}, extra_repr = {"extra_repr", NULL, NULL};

static bool look_up(struct attribute *a, PyTypeObject *type)
{
	a->name = a->name ? a->name : PyUnicode_InternFromString(a->text);
	if (!a->name)
		return false;
	PyObject *found = PyObject_GetAttr((PyObject *)type, a->name);
	if (found && Py_TYPE(found) != &PyGetSetDescr_Type)
		Py_CLEAR(found);
	PyErr_Clear();
	Py_XSETREF(a->descriptor, (PyGetSetDescrObject *)found);
	return true;
}

bool args_tensors_are(PyTypeObject *type)
{
	if (!look_up(&shape_name, type) || !look_up(&dtype_name, type) || !look_up(&extra_repr, type))
		return false;
	Py_INCREF(type);
	Py_XSETREF(tensor_type, type);
	return true;
}

static PyObject *attribute(PyObject *o, const struct attribute *a)
{
	PyObject *value = NULL;
	bool tensor = is_tensor(o);
	if (tensor)
		overrides_hide(o);
	if (a->descriptor && tensor)
		value = a->descriptor->d_getset->get(o, a->descriptor->d_getset->closure);
	else if (a->name)
		value = PyObject_GetAttr(o, a->name);
	if (!value)
		error_clear();
	return value;
}

/* New references, or NULL. A shape is a tuple. */
static PyObject *shape_of(PyObject *o)
{
	PyObject *shape = attribute(o, &shape_name);
	if (shape && !PyTuple_Check(shape))
		Py_CLEAR(shape);
	return shape;
}

static PyObject *dtype_of(PyObject *o) { return attribute(o, &dtype_name); }

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
	uint64_t *v;
	uint32_t n, cap;
	bool values;           /* of numbers are told */
	bool over;             /* there would be too many */
	bool few, deep;        /* values, or what stands deep in lists, are not told */
	uint64_t some[WORDS_FEW];
};

static void words_begin(struct words *s, bool values)
{
	s->v = s->some;
	s->n = 0;
	s->cap = WORDS_FEW;
	s->values = values;
	s->over = s->few = s->deep = false;
}

static void words_end(struct words *s)
{
	if (s->v != s->some)
		PyMem_Free(s->v);
}

static bool words_grow(struct words *s)
{
	uint64_t *more = s->cap < WORDS_MOST ? PyMem_Malloc(2 * s->cap * sizeof *more) : NULL;
	if (!more) {
		s->over = true;
		return false;
	}
	memcpy(more, s->v, s->n * sizeof *more);
	words_end(s);
	s->v = more;
	s->cap *= 2;
	return true;
}

static void word(struct words *s, uint64_t v)
{
	if (LIKELY(s->n < s->cap) || words_grow(s))
		s->v[s->n++] = v;
}

/* Of a list of numbers the values are told, or that it is one. */
static bool tells_values(PyObject *list, bool values)
{
	return values && (!settings.format->few_numbers || PySequence_Fast_GET_SIZE(list) <= LIST_VALUES_MOST);
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

/* Anything but a number, a text or None is one word. */
static void sign_scalar(struct words *s, PyObject *o, enum kind k)
{
	word(s, k == KIND_BOOL ? k | (uint64_t)(o == Py_True) << 8 : k);
	if (k != KIND_INT && k != KIND_FLOAT && k != KIND_STR)
		return;
	if (s->values)
		sign_number(s, o, k);
	else
		s->few = true;
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

static void sign(struct words *s, PyObject *o, unsigned depth);

static void sign_list(struct words *s, PyObject *list, enum kind k, unsigned depth)
{
	PyObject *item;
	bool numbers = k == KIND_VALUES;
	word(s, (uint64_t)k | (uint64_t)PyTuple_Check(list) << 8 | (uint64_t)PySequence_Fast_GET_SIZE(list) << 16);
	if (numbers && !tells_values(list, s->values)) {
		s->few |= PySequence_Fast_GET_SIZE(list) > 0;
		return;
	}
	if (!numbers && depth >= LIST_DEPTH_MOST) {
		s->deep = true;
		return;
	}
	for (Py_ssize_t i = 0; !s->over && next_item(list, &i, &item);) {
		Py_INCREF(item);
		if (numbers)
			sign_scalar(s, item, scalar_kind(item));
		else
			sign(s, item, depth + 1);
		Py_DECREF(item);
	}
}

static void sign(struct words *s, PyObject *o, unsigned depth)
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
		sign_scalar(s, o, k);
		break;
	case KIND_TENSOR:
	case KIND_ARRAY:
		sign_sized(s, o, k);
		break;
	case KIND_VALUES:
	case KIND_LIST:
		sign_list(s, o, k, depth);
		break;
	}
}

static void sign_call(struct words *s, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
	Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
	for (Py_ssize_t i = 0; i < n && !s->over; i++)
		sign(s, args[i], 0);
	for (Py_ssize_t i = 0; i < named && !s->over; i++) {
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
	const struct text *functions = maker_of && m->ids ? calls_maker_name(maker_of) : NULL;
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
	const char *type = *keep ? PyUnicode_AsUTF8(*keep) : NULL;
	error_clear();
	return type ? last_name(type) : NULL;
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
	PyObject *item;
	Py_ssize_t i = 0;
	while (next_item(list, &i, &item))
		if (!is_tensor(item))
			return false;
	return i > 0;
}

static void put_shape_of(struct marker *m, PyObject *o)
{
	PyObject *shape = shape_of(o);
	if (shape)
		put_shape(m, shape);
	else
		line_put(&m->line, "()");
	Py_XDECREF(shape);
}

static void put_type_of(struct marker *m, PyObject *o)
{
	PyObject *keep = NULL;
	const char *type = type_name(o, &keep);
	line_put(&m->line, "'");
	line_put(&m->line, type ? type : "");
	line_put(&m->line, "'");
	Py_XDECREF(keep);
}

bool args_put_tensors(struct marker *m, PyObject *name, PyObject *list)
{
	PyObject *item;
	if (!are_tensors(list))
		return false;
	begin_arg(m, name, NULL, "tensors");
	for (int types = 0; types < 2; types++) {
		line_put(&m->line, types ? "], 'dtypes': [" : ", 'shapes': [");
		for (Py_ssize_t i = 0; next_item(list, &i, &item);) {
			Py_INCREF(item);
			line_put(&m->line, i > 1 ? ", " : "");
			(types ? put_type_of : put_shape_of)(m, item);
			Py_DECREF(item);
		}
	}
	line_put(&m->line, "]}");
	return true;
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

/* What else may be among them would be printed with its values. */
static bool are_scalars(PyObject *list)
{
	PyObject *item;
	for (Py_ssize_t i = 0; next_item(list, &i, &item);)
		if (scalar_kind(item) == KIND_OTHER)
			return false;
	return true;
}

static void put_values(struct marker *m, PyObject *name, PyObject *list)
{
	PyObject *item;
	Py_ssize_t i = 0;
	bool tuple = PyTuple_Check(list);
	begin_arg(m, name, NULL, tuple ? "tuple" : "list");
	if (tells_values(list, m->values) && are_scalars(list)) {
		line_put(&m->line, tuple ? ", 'value': (" : ", 'value': [");
		while (next_item(list, &i, &item)) {
			line_put(&m->line, i > 1 ? ", " : "");
			line_repr(&m->line, item);
		}
		line_put(&m->line, !tuple ? "]" : i == 1 ? ",)" : ")");
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
		if (depth < LIST_DEPTH_MOST)
			settings.format->put_list(m, name, o, depth);
		break;
	}
}

void args_put_items(struct marker *m, PyObject *name, PyObject *list, unsigned depth)
{
	PyObject *item;
	for (Py_ssize_t i = 0; next_item(list, &i, &item);) {
		Py_INCREF(item);
		put(m, name, item, depth + 1);
		Py_DECREF(item);
	}
}

static void put_ids(struct marker *m, PyObject *const *args, Py_ssize_t n, int64_t call)
{
	int64_t made[INPUTS_MOST];
	int some = calls_inputs(args, n, made);
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

/* With `call` >= 0 it has DLProf's call ids. Where the arguments are too long it is bare. */
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
	size_t head = m.line.n;
	for (Py_ssize_t i = 0; i < n; i++)
		put(&m, NULL, args[i], 0);
	for (Py_ssize_t i = 0; i < named; i++)
		put(&m, PyTuple_GET_ITEM(kwnames, i), args[n + i], 0);
	bool bare = m.line.n > TEXT_BYTES_MOST;
	m.line.n = bare ? head : m.line.n;
	line_put(&m.line, "]}");
	struct text *t = line_text(&m.line);
	if (t)
		t->bare = bare;
	return t;
}

static const struct text *bare_text(struct wrapper *w, enum limit why)
{
	limit_reached(why);
	if (!w->bare)
		w->bare = marker(w, NULL, 0, NULL, true, -1);
	return w->bare;
}

/* Looks for the text that was made before, or makes it. */
static const struct text *text_of(struct wrapper *w, const struct words *s, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
	if (UNLIKELY(s->over))
		return bare_text(w, LIMIT_TEXT);
	uint64_t hash = hash_words(s->v, s->n);
	struct text *t = table_find(&w->texts, s->v, s->n, hash);
	if (UNLIKELY(!t)) {
		if (w->texts.n >= COMBINATIONS_MOST)
			return bare_text(w, LIMIT_COMBINATIONS);
		t = marker(w, args, n, kwnames, s->values, -1);
		if (t && !table_add(&w->texts, s->v, s->n, hash, t)) {
			text_free(t);
			t = NULL;
		}
	}
	if (t && UNLIKELY(t->bare))
		limit_reached(LIMIT_TEXT);
	return t;
}

const struct text *args_text(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
	struct words s;
	words_begin(&s, w->texts.n < VALUES_MOST || !settings.format->few_numbers);
	/* A wrapper that a program has by name lives on when the form is another one. Addresses of forms are even. */
	word(&s, (uintptr_t)settings.format | s.values);
	sign_call(&s, args, n, kwnames);
	PyErr_Clear();
	if (UNLIKELY(s.few))
		limit_reached(LIMIT_VALUES);
	if (UNLIKELY(s.deep))
		limit_reached(LIMIT_DEPTH);
	const struct text *t = text_of(w, &s, args, n, kwnames);
	words_end(&s);
	return t;
}

struct text *args_text_with_ids(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t call)
{
	struct text *t = marker(w, args, n, kwnames, true, call);
	if (t && t->bare)
		limit_reached(LIMIT_TEXT);
	return t;
}

struct text *args_module_text(struct wrapper *w, PyObject *self)
{
	PyObject *repr = extra_repr.name ? PyObject_CallMethodNoArgs(self, extra_repr.name) : NULL;
	struct line l = {NULL, 0, 0};
	put_module(&l, w);
	line_put(&l, ", 'strRepr': ");
	if (!repr || !line_repr(&l, repr))
		line_put(&l, "''");
	error_clear();
	Py_XDECREF(repr);
	line_put(&l, "}");
	return line_text(&l);
}
