/* opscope._core: the C library (opscope.h, arrow.h) as Python objects, no more. What users see is made of it in trace.py and table.py.
 *
 * Limited API of Python 3.9: one binary serves 3.9 and all later versions. The interpreter is let go wherever the library works. Texts are
 * decoded as CSV and Arrow have them: bytes that are no UTF-8 become U+FFFD. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <opscope/arrow.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ERROR_SIZE = 1024, CODES_SEEN = 1024, TELL_MS = 100 };

/* Set once, when the module is imported, and never freed: as in all modules with one phase. */
static PyObject *error_type, *bad_bytes;
static PyTypeObject *profile_type, *table_type, *job_type;

typedef struct {
	PyObject_HEAD
	struct opscope_profile *p; /* NULL = closed */
	unsigned busy;             /* calls that are at work in it; changed only with the interpreter held */
	bool closing;              /* the last of them closes it */
} Profile;

typedef struct {
	PyObject_HEAD
	const struct opscope_table *t;
	struct opscope_table *own; /* the same; NULL = a section, which lives in *first */
	PyObject *first;
} Table;

/* --- texts ------------------------------------------------------------------------------------------------------ */

static PyObject *text_of(const char *p, size_t n)
{
	PyObject *s = PyUnicode_DecodeUTF8(p, (Py_ssize_t)n, NULL);
	if (s || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
		return s;
	PyErr_Clear();
	PyObject *escaped = PyUnicode_DecodeUTF8(p, (Py_ssize_t)n, "surrogateescape");
	s = escaped ? PyUnicode_Translate(escaped, bad_bytes, "strict") : NULL;
	Py_XDECREF(escaped);
	return s;
}

static PyObject *text_or_none(const char *s)
{
	if (s)
		return text_of(s, strlen(s));
	Py_RETURN_NONE;
}

/* Names of files in a message may be any bytes. */
static PyObject *fail_as(enum opscope_error code, const char *message)
{
	static const char *const names[] = {
		[OPSCOPE_NO_ERROR] = "usage", [OPSCOPE_ERROR_IO] = "io", [OPSCOPE_ERROR_FORMAT] = "format", [OPSCOPE_ERROR_USAGE] = "usage",
		[OPSCOPE_ERROR_LACKS] = "lacks", [OPSCOPE_ERROR_LIMIT] = "limit",
	};
	if (code == OPSCOPE_ERROR_NOMEM) {
		PyErr_SetString(PyExc_MemoryError, message);
		return NULL;
	}
	/* A newer library may know of more. */
	const char *known = (size_t)code < sizeof names / sizeof *names ? names[code] : "usage";
	PyObject *s = text_of(message, strlen(message)), *name = PyUnicode_FromString(known);
	PyObject *error = s && name ? PyObject_CallFunctionObjArgs(error_type, s, NULL) : NULL;
	if (error && PyObject_SetAttrString(error, "code", name) == 0)
		PyErr_SetObject(error_type, error);
	Py_XDECREF(error);
	Py_XDECREF(name);
	Py_XDECREF(s);
	return NULL;
}

/* What the library's newest call of this thread says. */
static PyObject *fail(const char *message)
{
	return fail_as(opscope_error_code(), message);
}

/* All types are made by the library alone: an object without one would be nothing. */
static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	PyErr_SetString(PyExc_TypeError, "made by opscope.load and its reports");
	return NULL;
}

/* What "surrogateescape" makes of a byte that is no UTF-8 -> U+FFFD. */
static PyObject *bad_byte_map(void)
{
	PyObject *map = PyDict_New();
	for (long code = 0xDC80; map && code <= 0xDCFF; code++) {
		PyObject *from = PyLong_FromLong(code), *to = PyLong_FromLong(0xFFFD);
		if (!from || !to || PyDict_SetItem(map, from, to) < 0)
			Py_CLEAR(map);
		Py_XDECREF(from);
		Py_XDECREF(to);
	}
	return map;
}

/* --- options ---------------------------------------------------------------------------------------------------- */

/* A str as UTF-8, without a NUL in it; the bytes belong to *keep. */
static const char *utf8(PyObject *s, PyObject **keep)
{
	char *p = NULL;
	*keep = PyUnicode_Check(s) ? PyUnicode_AsEncodedString(s, "utf-8", "surrogateescape") : NULL;
	if (!*keep && !PyErr_Occurred())
		PyErr_Format(PyExc_TypeError, "a str was expected, not %R", s);
	if (!*keep || PyBytes_AsStringAndSize(*keep, &p, NULL) < 0)
		Py_CLEAR(*keep);
	return *keep ? p : NULL;
}

static int set_option(struct opscope_options *o, PyObject *name, PyObject *value)
{
	char message[ERROR_SIZE];
	PyObject *n = NULL, *v = NULL;
	const char *key = utf8(name, &n), *text = key ? utf8(value, &v) : NULL;
	int rc = text ? opscope_options_set(o, key, text, message, sizeof message) : -1;
	if (text && rc < 0)
		fail(message);
	Py_XDECREF(n);
	Py_XDECREF(v);
	return rc;
}

/* From a dict of str to str. NULL and an exception. */
static struct opscope_options *options_of(PyObject *dict)
{
	struct opscope_options *o = opscope_options_new();
	PyObject *name, *value;
	Py_ssize_t at = 0;
	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "options: a dict was expected");
		opscope_options_free(o);
		return NULL;
	}
	if (!o) {
		PyErr_NoMemory();
		return NULL;
	}
	while (PyDict_Next(dict, &at, &name, &value))
		if (set_option(o, name, value) < 0) {
			opscope_options_free(o);
			return NULL;
		}
	return o;
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static PyObject *new_table(const struct opscope_table *t, struct opscope_table *own, PyObject *first)
{
	Table *self = PyObject_New(Table, table_type);
	if (!self) {
		opscope_table_free(own);
		return NULL;
	}
	self->t = t;
	self->own = own;
	self->first = first;
	Py_XINCREF(first);
	return (PyObject *)self;
}

static void table_dealloc(PyObject *object)
{
	Table *self = (Table *)object;
	PyTypeObject *type = Py_TYPE(object);
	opscope_table_free(self->own);
	Py_XDECREF(self->first);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *table_name(PyObject *self, void *closure)
{
	return text_or_none(opscope_table_name(((Table *)self)->t));
}

static PyObject *table_title(PyObject *self, void *closure)
{
	return text_or_none(opscope_table_title(((Table *)self)->t));
}

static PyObject *table_rows(PyObject *self, void *closure)
{
	return PyLong_FromSize_t(opscope_table_rows(((Table *)self)->t));
}

static PyObject *table_notes(PyObject *self, void *closure)
{
	const struct opscope_table *t = ((Table *)self)->t;
	unsigned n = opscope_table_notes(t);
	PyObject *list = PyTuple_New(n);
	for (unsigned i = 0; list && i < n; i++) {
		PyObject *note = text_or_none(opscope_table_note(t, i));
		if (!note || PyTuple_SetItem(list, i, note) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *column_facts(const struct opscope_table *t, unsigned c)
{
	static const char *const types[] = {[OPSCOPE_TEXT] = "string", [OPSCOPE_INTEGER] = "integer", [OPSCOPE_REAL] = "number", [OPSCOPE_BOOLEAN] = "boolean"};
	PyObject *id = text_or_none(opscope_column_id(t, c)), *title = text_or_none(opscope_column_title(t, c));
	PyObject *help = text_or_none(opscope_column_help(t, c)), *facts = NULL;
	if (id && title && help)
		facts = Py_BuildValue("(OOssO)", id, title, types[opscope_column_type(t, c)], opscope_column_unit(t, c), help);
	Py_XDECREF(id);
	Py_XDECREF(title);
	Py_XDECREF(help);
	return facts;
}

static PyObject *table_columns(PyObject *self, void *closure)
{
	const struct opscope_table *t = ((Table *)self)->t;
	unsigned n = opscope_table_columns(t);
	PyObject *list = PyTuple_New(n);
	for (unsigned c = 0; list && c < n; c++) {
		PyObject *facts = column_facts(t, c);
		if (!facts || PyTuple_SetItem(list, c, facts) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *table_sections(PyObject *self, void *closure)
{
	const struct opscope_table *t = ((Table *)self)->t, *s;
	PyObject *list = PyList_New(0), *owner = ((Table *)self)->first ? ((Table *)self)->first : self;
	for (unsigned i = 0; list && owner == self && (s = opscope_table_section(t, i)); i++) {
		PyObject *section = new_table(s, NULL, owner);
		if (!section || PyList_Append(list, section) < 0)
			Py_CLEAR(list);
		Py_XDECREF(section);
	}
	return list;
}

static PyObject *cell_value(const struct opscope_table *t, size_t row, unsigned c, enum opscope_type type)
{
	if (opscope_table_is_null(t, row, c))
		Py_RETURN_NONE;
	switch (type) {
	case OPSCOPE_INTEGER:
		return PyLong_FromLongLong(opscope_table_integer(t, row, c));
	case OPSCOPE_REAL:
		return PyFloat_FromDouble(opscope_table_real(t, row, c));
	case OPSCOPE_BOOLEAN:
		return PyBool_FromLong(opscope_table_integer(t, row, c) != 0);
	case OPSCOPE_TEXT:
		break;
	}
	return text_of(opscope_table_text(t, row, c), opscope_table_text_size(t, row, c));
}

/* The number of the column that the argument is. -1 and an exception. */
static long column_number(const struct opscope_table *t, PyObject *argument)
{
	long c = PyLong_AsLong(argument);
	if (c == -1 && PyErr_Occurred())
		return -1;
	if (c >= 0 && c < (long)opscope_table_columns(t))
		return c;
	PyErr_SetString(PyExc_IndexError, "no such column");
	return -1;
}

static PyObject *table_row(PyObject *self, PyObject *argument)
{
	const struct opscope_table *t = ((Table *)self)->t;
	unsigned n = opscope_table_columns(t);
	size_t row = PyLong_AsSize_t(argument);
	if (PyErr_Occurred())
		return NULL;
	if (row >= opscope_table_rows(t)) {
		PyErr_SetString(PyExc_IndexError, "no such row");
		return NULL;
	}
	PyObject *values = PyTuple_New(n);
	for (unsigned c = 0; values && c < n; c++) {
		PyObject *value = cell_value(t, row, c, opscope_column_type(t, c));
		if (!value || PyTuple_SetItem(values, c, value) < 0)
			Py_CLEAR(values);
	}
	return values;
}

static PyObject *table_column(PyObject *self, PyObject *argument)
{
	const struct opscope_table *t = ((Table *)self)->t;
	size_t rows = opscope_table_rows(t);
	long c = column_number(t, argument);
	PyObject *list = c < 0 ? NULL : PyList_New((Py_ssize_t)rows);
	for (size_t r = 0; list && r < rows; r++) {
		PyObject *value = cell_value(t, r, (unsigned)c, opscope_column_type(t, (unsigned)c));
		if (!value || PyList_SetItem(list, (Py_ssize_t)r, value) < 0)
			Py_CLEAR(list);
	}
	return list;
}

/* (values, valid): 8 bytes a row and 1 byte a row, for whoever builds arrays: these lie in the byte arrays, and may be written to. */
static PyObject *table_numbers(PyObject *self, PyObject *argument)
{
	const struct opscope_table *t = ((Table *)self)->t;
	size_t rows = opscope_table_rows(t);
	long c = column_number(t, argument);
	if (c < 0)
		return NULL;
	bool real = opscope_column_type(t, (unsigned)c) == OPSCOPE_REAL;
	PyObject *values = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(rows * 8)), *valid = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)rows);
	char *value = values ? PyByteArray_AsString(values) : NULL, *ok = valid ? PyByteArray_AsString(valid) : NULL;
	for (size_t r = 0; value && ok && r < rows; r++) {
		double d = real ? opscope_table_real(t, r, (unsigned)c) : 0;
		int64_t i = real ? 0 : opscope_table_integer(t, r, (unsigned)c);
		memcpy(value + r * 8, real ? (const void *)&d : (const void *)&i, 8);
		ok[r] = (char)!opscope_table_is_null(t, r, (unsigned)c);
	}
	PyObject *pair = value && ok ? PyTuple_Pack(2, values, valid) : NULL;
	Py_XDECREF(values);
	Py_XDECREF(valid);
	return pair;
}

/* The number of a text in *list; a new one is appended. Equal texts of a table have one address (opscope.h: they are kept once). -1 and an exception. */
static long code_of(PyObject *codes, PyObject *list, const char *text, size_t size)
{
	PyObject *address = PyLong_FromVoidPtr((void *)(uintptr_t)text), *known = address ? PyDict_GetItemWithError(codes, address) : NULL;
	long code = known ? PyLong_AsLong(known) : -1;
	if (!known && address && !PyErr_Occurred()) {
		PyObject *s = text_of(text, size), *number = PyLong_FromSsize_t(PyList_Size(list));
		if (s && number && PyDict_SetItem(codes, address, number) == 0 && PyList_Append(list, s) == 0)
			code = (long)PyList_Size(list) - 1;
		Py_XDECREF(s);
		Py_XDECREF(number);
	}
	Py_XDECREF(address);
	return code;
}

static int put_codes(const struct opscope_table *t, unsigned c, PyObject *codes, PyObject *list, int32_t *out)
{
	struct {
		const char *text;
		int32_t code;
	} seen[CODES_SEEN] = {{0}};
	for (size_t r = 0; r < opscope_table_rows(t); r++) {
		const char *text = opscope_table_is_null(t, r, c) ? NULL : opscope_table_text(t, r, c);
		size_t at = (uintptr_t)text / 8 % CODES_SEEN;
		if (text && seen[at].text != text) {
			long code = code_of(codes, list, text, opscope_table_text_size(t, r, c));
			if (code < 0)
				return -1;
			seen[at].text = text;
			seen[at].code = (int32_t)code;
		}
		out[r] = text ? seen[at].code : -1;
	}
	return 0;
}

/* (codes, texts): 4 bytes a row, -1 where unknown; and the texts that they are the numbers of. */
static PyObject *table_codes(PyObject *self, PyObject *argument)
{
	const struct opscope_table *t = ((Table *)self)->t;
	long c = column_number(t, argument);
	if (c < 0)
		return NULL;
	PyObject *codes = PyDict_New(), *list = PyList_New(0), *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(opscope_table_rows(t) * sizeof(int32_t))), *pair = NULL;
	if (opscope_column_type(t, (unsigned)c) != OPSCOPE_TEXT)
		PyErr_SetString(PyExc_TypeError, "codes: a column of text was expected");
	else if (codes && list && bytes && put_codes(t, (unsigned)c, codes, list, (int32_t *)(void *)PyByteArray_AsString(bytes)) == 0)
		pair = PyTuple_Pack(2, bytes, list);
	Py_XDECREF(codes);
	Py_XDECREF(list);
	Py_XDECREF(bytes);
	return pair;
}

static PyObject *table_render(PyObject *self, PyObject *args)
{
	const char *format;
	PyObject *dict;
	char message[ERROR_SIZE], *text;
	size_t size;
	if (!PyArg_ParseTuple(args, "sO", &format, &dict))
		return NULL;
	struct opscope_options *o = options_of(dict);
	if (!o)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	text = opscope_table_render(((Table *)self)->t, format, o, &size, message, sizeof message);
	Py_END_ALLOW_THREADS
	opscope_options_free(o);
	if (!text)
		return fail(message);
	PyObject *bytes = PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
	opscope_text_free(text);
	return bytes;
}

/* --- Arrow: capsules as https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html wants them -------------------- */

/* By whatever name: consumers may have given it one that says that it is used. */
static void *content(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
}

static void free_schema(PyObject *capsule)
{
	struct ArrowSchema *s = content(capsule);
	if (s->release)
		s->release(s);
	PyMem_Free(s);
}

static void free_array(PyObject *capsule)
{
	struct ArrowArray *a = content(capsule);
	if (a->release)
		a->release(a);
	PyMem_Free(a);
}

static void free_stream(PyObject *capsule)
{
	struct ArrowArrayStream *s = content(capsule);
	if (s->release)
		s->release(s);
	PyMem_Free(s);
}

/* The capsule around `size` zeroed bytes, which are in *out; to be filled in at once. */
static PyObject *new_capsule(const char *name, size_t size, PyCapsule_Destructor when_freed, void **out)
{
	*out = PyMem_Malloc(size);
	if (!*out)
		return PyErr_NoMemory();
	memset(*out, 0, size);
	PyObject *capsule = PyCapsule_New(*out, name, when_freed);
	if (!capsule)
		PyMem_Free(*out);
	return capsule;
}

static PyObject *table_arrow_schema(PyObject *self, PyObject *none)
{
	void *schema;
	char message[ERROR_SIZE];
	PyObject *capsule = new_capsule("arrow_schema", sizeof(struct ArrowSchema), free_schema, &schema);
	if (capsule && opscope_table_arrow(((Table *)self)->t, schema, NULL, message, sizeof message) < 0) {
		Py_DECREF(capsule);
		return fail(message);
	}
	return capsule;
}

static PyObject *table_arrow_array(PyObject *self, PyObject *none)
{
	void *schema, *batch;
	PyObject *first = new_capsule("arrow_schema", sizeof(struct ArrowSchema), free_schema, &schema);
	PyObject *second = first ? new_capsule("arrow_array", sizeof(struct ArrowArray), free_array, &batch) : NULL;
	PyObject *pair = NULL;
	char message[ERROR_SIZE];
	if (second) {
		int rc;
		Py_BEGIN_ALLOW_THREADS
		rc = opscope_table_arrow(((Table *)self)->t, schema, batch, message, sizeof message);
		Py_END_ALLOW_THREADS
		pair = rc < 0 ? fail(message) : PyTuple_Pack(2, first, second);
	}
	Py_XDECREF(first);
	Py_XDECREF(second);
	return pair;
}

static PyObject *table_arrow_stream(PyObject *self, PyObject *none)
{
	void *stream;
	PyObject *capsule = new_capsule("arrow_array_stream", sizeof(struct ArrowArrayStream), free_stream, &stream);
	if (capsule) {
		int rc;
		char message[ERROR_SIZE];
		Py_BEGIN_ALLOW_THREADS
		rc = opscope_table_arrow_stream(((Table *)self)->t, stream, message, sizeof message);
		Py_END_ALLOW_THREADS
		if (rc < 0) {
			Py_DECREF(capsule);
			return fail(message);
		}
	}
	return capsule;
}

static PyGetSetDef table_attributes[] = {
	{"name", table_name, NULL, "Name of the report or section.", NULL},
	{"title", table_title, NULL, "Its heading.", NULL},
	{"rows", table_rows, NULL, "How many rows.", NULL},
	{"notes", table_notes, NULL, "Remarks: what the numbers do not cover.", NULL},
	{"columns", table_columns, NULL, "(id, title, type, unit, help) of each column.", NULL},
	{"sections", table_sections, NULL, "Further tables of the same report.", NULL},
	{0},
};

static PyMethodDef table_methods[] = {
	{"row", table_row, METH_O, "row(number): its values, one for each column, None where unknown."},
	{"column", table_column, METH_O, "column(number): its values, None where unknown."},
	{"numbers", table_numbers, METH_O, "numbers(number): (values, valid) of a column of numbers as byte arrays, 8 and 1 a row."},
	{"codes", table_codes, METH_O, "codes(number): (codes, texts) of a column of text: int32 a row as a byte array, -1 where unknown, and the distinct texts."},
	{"render", table_render, METH_VARARGS, "render(format, options): bytes."},
	{"arrow_schema", table_arrow_schema, METH_NOARGS, "A capsule \"arrow_schema\"."},
	{"arrow_array", table_arrow_array, METH_NOARGS, "Capsules (\"arrow_schema\", \"arrow_array\")."},
	{"arrow_stream", table_arrow_stream, METH_NOARGS, "A capsule \"arrow_array_stream\"."},
	{0},
};

static PyType_Slot table_slots[] = {
	{Py_tp_doc, "A table of the C library."},
	{Py_tp_new, refuse_new},
	{Py_tp_dealloc, table_dealloc},
	{Py_tp_getset, table_attributes},
	{Py_tp_methods, table_methods},
	{0},
};

static PyType_Spec table_spec = {"opscope._core.Table", sizeof(Table), 0, Py_TPFLAGS_DEFAULT, table_slots};

/* --- profiles --------------------------------------------------------------------------------------------------- */

static void close_profile(Profile *self)
{
	struct opscope_profile *p = self->p;
	self->p = NULL;
	Py_BEGIN_ALLOW_THREADS
	opscope_close(p);
	Py_END_ALLOW_THREADS
}

/* Around each call into the library: close() in one thread waits for the reports of others. */
static int enter(Profile *self)
{
	if (!self->p || self->closing) {
		fail_as(OPSCOPE_ERROR_USAGE, "the trace is closed");
		return -1;
	}
	self->busy++;
	return 0;
}

static void leave(Profile *self)
{
	if (--self->busy == 0 && self->closing)
		close_profile(self);
}

static void profile_dealloc(PyObject *object)
{
	Profile *self = (Profile *)object;
	PyTypeObject *type = Py_TYPE(object);
	close_profile(self);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *profile_close(PyObject *object, PyObject *none)
{
	Profile *self = (Profile *)object;
	if (self->busy)
		self->closing = true;
	else
		close_profile(self);
	Py_RETURN_NONE;
}

static PyObject *profile_closed(PyObject *object, void *closure)
{
	return PyBool_FromLong(!((Profile *)object)->p || ((Profile *)object)->closing);
}

static PyObject *profile_format(PyObject *object, void *closure)
{
	Profile *self = (Profile *)object;
	if (enter(self) < 0)
		return NULL;
	PyObject *format = text_or_none(opscope_format(self->p));
	leave(self);
	return format;
}

static PyObject *profile_n_events(PyObject *object, void *closure)
{
	Profile *self = (Profile *)object;
	if (enter(self) < 0)
		return NULL;
	PyObject *events = PyLong_FromUnsignedLongLong(opscope_events(self->p));
	leave(self);
	return events;
}

static PyObject *one_problem(const struct opscope_profile *p, unsigned i)
{
	const char *text;
	uint64_t count;
	int severity;
	Py_BEGIN_ALLOW_THREADS
	text = opscope_problem_text(p, i);
	count = opscope_problem_count(p, i);
	severity = opscope_problem_severity(p, i);
	Py_END_ALLOW_THREADS
	PyObject *message = text_or_none(text);
	PyObject *facts = message ? Py_BuildValue("(OKi)", message, (unsigned long long)count, severity) : NULL;
	Py_XDECREF(message);
	return facts;
}

/* A report of another thread may hold the lock for long: it must not be waited for with the interpreter held. */
static PyObject *profile_problems(PyObject *object, void *closure)
{
	Profile *self = (Profile *)object;
	unsigned n;
	if (enter(self) < 0)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	n = opscope_problems(self->p);
	Py_END_ALLOW_THREADS
	PyObject *list = PyList_New(0);
	for (unsigned i = 0; list && i < n; i++) {
		PyObject *facts = one_problem(self->p, i);
		if (!facts || PyList_Append(list, facts) < 0)
			Py_CLEAR(list);
		Py_XDECREF(facts);
	}
	leave(self);
	return list;
}

/* opscope_report, opscope_sql and, without a name, the others. */
typedef struct opscope_table *ask(struct opscope_profile *, const char *, const struct opscope_options *, char *, size_t);

static struct opscope_table *ask_events(struct opscope_profile *p, const char *name, const struct opscope_options *o, char *error, size_t error_size)
{
	return opscope_event_list(p, o, error, error_size);
}

static struct opscope_table *ask_timeline(struct opscope_profile *p, const char *name, const struct opscope_options *o, char *error, size_t error_size)
{
	return opscope_timeline(p, o, error, error_size);
}

static struct opscope_table *ask_advice(struct opscope_profile *p, const char *name, const struct opscope_options *o, char *error, size_t error_size)
{
	return opscope_advise(p, o, error, error_size);
}

static PyObject *table_of(Profile *self, ask *function, const char *name, PyObject *dict)
{
	char message[ERROR_SIZE];
	struct opscope_table *t;
	struct opscope_options *o = options_of(dict);
	if (!o)
		return NULL;
	if (enter(self) < 0) {
		opscope_options_free(o);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	t = function(self->p, name, o, message, sizeof message);
	Py_END_ALLOW_THREADS
	leave(self);
	opscope_options_free(o);
	return t ? new_table(t, t, NULL) : fail(message);
}

static PyObject *profile_report(PyObject *self, PyObject *args)
{
	const char *name;
	PyObject *dict;
	return PyArg_ParseTuple(args, "sO", &name, &dict) ? table_of((Profile *)self, opscope_report, name, dict) : NULL;
}

static PyObject *profile_sql(PyObject *self, PyObject *args)
{
	const char *query;
	PyObject *dict;
	return PyArg_ParseTuple(args, "sO", &query, &dict) ? table_of((Profile *)self, opscope_sql, query, dict) : NULL;
}

static PyObject *profile_advise(PyObject *self, PyObject *dict)
{
	return table_of((Profile *)self, ask_advice, NULL, dict);
}

static PyObject *profile_event_list(PyObject *self, PyObject *dict)
{
	return table_of((Profile *)self, ask_events, NULL, dict);
}

static PyObject *profile_timeline(PyObject *self, PyObject *dict)
{
	return table_of((Profile *)self, ask_timeline, NULL, dict);
}

/* Side a, then side b: neither is waited for while the other is held. */
static PyObject *profile_diff(PyObject *object, PyObject *args)
{
	Profile *self = (Profile *)object, *other;
	PyObject *of_self, *second, *of_other, *dict;
	char message[ERROR_SIZE];
	struct opscope_table *t = NULL;
	if (!PyArg_ParseTuple(args, "OO!OO", &of_self, Py_TYPE(object), &second, &of_other, &dict))
		return NULL;
	other = (Profile *)second;
	struct opscope_options *a = options_of(of_self), *b = a ? options_of(of_other) : NULL, *o = b ? options_of(dict) : NULL;
	bool entered = o && enter(self) == 0, both = entered && enter(other) == 0;
	if (both) {
		Py_BEGIN_ALLOW_THREADS
		t = opscope_diff(self->p, a, other->p, b, o, message, sizeof message);
		Py_END_ALLOW_THREADS
		leave(other);
	}
	if (entered)
		leave(self);
	opscope_options_free(a);
	opscope_options_free(b);
	opscope_options_free(o);
	return !both ? NULL : t ? new_table(t, t, NULL) : fail(message);
}

static PyObject *profile_export(PyObject *object, PyObject *args)
{
	Profile *self = (Profile *)object;
	const char *format;
	PyObject *path, *dict;
	char message[ERROR_SIZE], *notes;
	int rc;
	if (!PyArg_ParseTuple(args, "sO&O", &format, PyUnicode_FSConverter, &path, &dict))
		return NULL;
	struct opscope_options *o = options_of(dict);
	if (!o || enter(self) < 0) {
		opscope_options_free(o);
		Py_DECREF(path);
		return NULL;
	}
	const char *where = PyBytes_AsString(path);
	Py_BEGIN_ALLOW_THREADS
	rc = opscope_export(self->p, format, where, o, &notes, message, sizeof message);
	Py_END_ALLOW_THREADS
	leave(self);
	opscope_options_free(o);
	Py_DECREF(path);
	if (rc < 0)
		return fail(message);
	PyObject *text = notes ? text_of(notes, strlen(notes)) : PyUnicode_FromString("");
	opscope_text_free(notes);
	return text;
}

static PyGetSetDef profile_attributes[] = {
	{"closed", profile_closed, NULL, "Whether close() was called.", NULL},
	{"format", profile_format, NULL, "Name of the input's format.", NULL},
	{"n_events", profile_n_events, NULL, "Events that the input held.", NULL},
	{"problems", profile_problems, NULL, "(text, count, severity) of what was odd.", NULL},
	{0},
};

static PyMethodDef profile_methods[] = {
	{"close", profile_close, METH_NOARGS, "Frees it, after the calls that are at work."},
	{"report", profile_report, METH_VARARGS, "report(name, options): Table."},
	{"sql", profile_sql, METH_VARARGS, "sql(query, options): Table."},
	{"advise", profile_advise, METH_O, "advise(options): Table."},
	{"event_list", profile_event_list, METH_O, "event_list(options): Table with a row for each event."},
	{"timeline", profile_timeline, METH_O, "timeline(options): Table of a bounded number of rows."},
	{"diff", profile_diff, METH_VARARGS, "diff(options of this, profile, options of that, options): Table."},
	{"export", profile_export, METH_VARARGS, "export(format, path, options): what the file lacks, a line each."},
	{0},
};

static PyType_Slot profile_slots[] = {
	{Py_tp_doc, "A profile of the C library."},
	{Py_tp_new, refuse_new},
	{Py_tp_dealloc, profile_dealloc},
	{Py_tp_getset, profile_attributes},
	{Py_tp_methods, profile_methods},
	{0},
};

static PyType_Spec profile_spec = {"opscope._core.Profile", sizeof(Profile), 0, Py_TPFLAGS_DEFAULT, profile_slots};

/* --- jobs ------------------------------------------------------------------------------------------------------- */

/* Whom to tell how far reading is, and what that raised: the library is not at a place where it could stop. */
struct teller {
	PyObject *callable;
	PyObject *type, *value, *traceback;
};

static void tell(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
	struct teller *x = context;
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *result = x->type ? NULL : PyObject_CallFunction(x->callable, "KK", (unsigned long long)done_bytes, (unsigned long long)total_bytes);
	if (!result && !x->type)
		PyErr_Fetch(&x->type, &x->value, &x->traceback);
	Py_XDECREF(result);
	PyGILState_Release(state);
}

typedef struct {
	PyObject_HEAD
	struct opscope_job *j;
} Job;

static void job_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	opscope_job_close(((Job *)object)->j);
	PyObject_Free(object);
	Py_DECREF(type);
}

static PyObject *job_kept(PyObject *self, void *closure)
{
	return PyBool_FromLong(opscope_job_is_kept(((Job *)self)->j));
}

static PyObject *job_recordings(PyObject *self, void *closure)
{
	const struct opscope_job *j = ((Job *)self)->j;
	PyObject *list = PyList_New(0);
	for (unsigned i = 0; list && i < opscope_job_recordings(j); i++) {
		const char *path = opscope_job_path(j, i);
		PyObject *facts = Py_BuildValue("(LN)", (long long)opscope_job_rank(j, i), PyUnicode_DecodeFSDefault(path));
		if (!facts || PyList_Append(list, facts) < 0)
			Py_CLEAR(list);
		Py_XDECREF(facts);
	}
	return list;
}

/* Without a name, advice. */
static PyObject *ask_job(Job *self, const char *name, PyObject *dict, PyObject *progress)
{
	char message[ERROR_SIZE];
	struct teller told = {.callable = progress};
	struct opscope_table *t;
	struct opscope_options *o = options_of(dict);
	if (!o)
		return NULL;
	if (progress != Py_None)
		opscope_options_progress(o, tell, &told);
	Py_BEGIN_ALLOW_THREADS
	t = name ? opscope_job_report(self->j, name, o, message, sizeof message) : opscope_job_advise(self->j, o, message, sizeof message);
	Py_END_ALLOW_THREADS
	opscope_options_free(o);
	if (told.type) {
		opscope_table_free(t);
		PyErr_Restore(told.type, told.value, told.traceback);
		return NULL;
	}
	return t ? new_table(t, t, NULL) : fail(message);
}

static PyObject *job_report(PyObject *self, PyObject *args)
{
	const char *name;
	PyObject *dict, *progress = Py_None;
	return PyArg_ParseTuple(args, "sO|O", &name, &dict, &progress) ? ask_job((Job *)self, name, dict, progress) : NULL;
}

static PyObject *job_advise(PyObject *self, PyObject *args)
{
	PyObject *dict, *progress = Py_None;
	return PyArg_ParseTuple(args, "O|O", &dict, &progress) ? ask_job((Job *)self, NULL, dict, progress) : NULL;
}

static PyObject *job_diff(PyObject *self, PyObject *args)
{
	PyObject *of_self, *other, *of_other, *dict;
	char message[ERROR_SIZE];
	struct opscope_table *t = NULL;
	if (!PyArg_ParseTuple(args, "OO!OO", &of_self, job_type, &other, &of_other, &dict))
		return NULL;
	struct opscope_options *a = options_of(of_self), *b = a ? options_of(of_other) : NULL, *o = b ? options_of(dict) : NULL;
	if (o) {
		Py_BEGIN_ALLOW_THREADS
		t = opscope_job_diff(((Job *)self)->j, a, ((Job *)other)->j, b, o, message, sizeof message);
		Py_END_ALLOW_THREADS
	}
	bool asked = o;
	opscope_options_free(a);
	opscope_options_free(b);
	opscope_options_free(o);
	return !asked ? NULL : t ? new_table(t, t, NULL) : fail(message);
}

static PyGetSetDef job_attributes[] = {
	{"kept", job_kept, NULL, "Whether it is kept in one file: its recordings are not at hand.", NULL},
	{"recordings", job_recordings, NULL, "(rank, path) of each, by rank.", NULL},
	{0},
};

static PyMethodDef job_methods[] = {
	{"report", job_report, METH_VARARGS, "report(name, options, progress=None): Table. progress(done_bytes, total_bytes) is called now and then."},
	{"advise", job_advise, METH_VARARGS, "advise(options, progress=None): Table."},
	{"diff", job_diff, METH_VARARGS, "diff(options of this, job, options of that, options): Table."},
	{0},
};

static PyType_Slot job_slots[] = {
	{Py_tp_doc, "A job of the C library."},
	{Py_tp_new, refuse_new},
	{Py_tp_dealloc, job_dealloc},
	{Py_tp_getset, job_attributes},
	{Py_tp_methods, job_methods},
	{0},
};

static PyType_Spec job_spec = {"opscope._core.Job", sizeof(Job), 0, Py_TPFLAGS_DEFAULT, job_slots};

/* open_job(path, options): None where it is no job. */
static PyObject *core_open_job(PyObject *module, PyObject *args)
{
	PyObject *path, *dict;
	char message[ERROR_SIZE];
	struct opscope_job *j;
	if (!PyArg_ParseTuple(args, "O&O", PyUnicode_FSConverter, &path, &dict))
		return NULL;
	struct opscope_options *o = options_of(dict);
	if (!o) {
		Py_DECREF(path);
		return NULL;
	}
	const char *where = PyBytes_AsString(path);
	Py_BEGIN_ALLOW_THREADS
	j = opscope_job_open(where, o, message, sizeof message);
	Py_END_ALLOW_THREADS
	opscope_options_free(o);
	Py_DECREF(path);
	if (!j && opscope_error_code() == OPSCOPE_ERROR_LACKS)
		Py_RETURN_NONE;
	if (!j)
		return fail(message);
	Job *self = PyObject_New(Job, job_type);
	if (!self) {
		opscope_job_close(j);
		return NULL;
	}
	self->j = j;
	return (PyObject *)self;
}

/* --- the module ------------------------------------------------------------------------------------------------- */

/* A trace that is being read: of the one who asks, and of the thread that reads it, if another. */
struct opening {
	char *path;
	struct opscope_options *o;
	struct opscope_profile *p;
	enum opscope_error code;
	char message[ERROR_SIZE];
	sem_t done;
	atomic_int owners;
	atomic_ullong done_bytes, total_bytes;
};

static void note_progress(void *opening, uint64_t done_bytes, uint64_t total_bytes)
{
	struct opening *x = opening;
	atomic_store(&x->done_bytes, done_bytes);
	atomic_store(&x->total_bytes, total_bytes);
}

static void opening_drop(struct opening *x)
{
	if (atomic_fetch_sub(&x->owners, 1) > 1)
		return;
	opscope_close(x->p);
	opscope_options_free(x->o);
	sem_destroy(&x->done);
	free(x->path);
	free(x);
}

static void *read_trace(void *arg)
{
	struct opening *x = arg;
	x->p = opscope_open(x->path, x->o, x->message, sizeof x->message);
	x->code = x->p ? OPSCOPE_NO_ERROR : opscope_error_code();
	sem_post(&x->done);
	opening_drop(x);
	return NULL;
}

/* Python hears of signals in its main thread alone: there, and where the program wants to be told, a thread of C reads. It is left to end by itself when a handler raises, or who is told. */
static bool read_in_thread(struct opening *x, bool told)
{
	pthread_t thread;
	atomic_init(&x->owners, 2);
	if ((told || syscall(SYS_gettid) == getpid()) && pthread_create(&thread, NULL, read_trace, x) == 0) {
		pthread_detach(thread);
		return true;
	}
	return false;
}

static int tell_bytes(const struct opening *x, PyObject *progress)
{
	PyObject *result = PyObject_CallFunction(progress, "KK", (unsigned long long)atomic_load(&x->done_bytes), (unsigned long long)atomic_load(&x->total_bytes));
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int wait_until_read(struct opening *x, PyObject *progress)
{
	const bool told = progress != Py_None;
	for (int rc = -1; rc < 0;) {
		Py_BEGIN_ALLOW_THREADS
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += told ? 0 : 1; /* a signal ends the wait at once, unless another thread has got it */
		until.tv_nsec += told ? TELL_MS * 1000000 : 0;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		rc = sem_timedwait(&x->done, &until);
		Py_END_ALLOW_THREADS
		if ((rc < 0 && PyErr_CheckSignals() < 0) || (told && tell_bytes(x, progress) < 0))
			return -1;
	}
	return 0;
}

/* -1: a handler of a signal has raised, or who is told. */
static int read_to_end(struct opening *x, PyObject *progress)
{
	if (read_in_thread(x, progress != Py_None))
		return wait_until_read(x, progress);
	Py_BEGIN_ALLOW_THREADS
	read_trace(x);
	Py_END_ALLOW_THREADS
	return 0;
}

static struct opening *new_opening(PyObject *path, PyObject *dict)
{
	struct opscope_options *o = options_of(dict);
	if (!o)
		return NULL;
	struct opening *x = calloc(1, sizeof *x);
	char *copy = strdup(PyBytes_AsString(path));
	if (!x || !copy) {
		free(x);
		free(copy);
		opscope_options_free(o);
		PyErr_NoMemory();
		return NULL;
	}
	x->path = copy;
	x->o = o;
	sem_init(&x->done, 0, 0);
	opscope_options_progress(o, note_progress, x);
	return x;
}

static PyObject *core_open(PyObject *module, PyObject *args)
{
	PyObject *path, *dict, *progress = Py_None;
	if (!PyArg_ParseTuple(args, "O&O|O", PyUnicode_FSConverter, &path, &dict, &progress))
		return NULL;
	struct opening *x = new_opening(path, dict);
	Py_DECREF(path);
	if (!x)
		return NULL;
	struct opscope_profile *p = NULL;
	if (read_to_end(x, progress) == 0) {
		p = x->p;
		x->p = NULL;
		if (!p)
			fail_as(x->code, x->message);
	}
	opening_drop(x);
	if (!p)
		return NULL;
	Profile *self = PyObject_New(Profile, profile_type);
	if (!self) {
		opscope_close(p);
		return NULL;
	}
	self->p = p;
	self->busy = 0;
	self->closing = false;
	return (PyObject *)self;
}

static PyObject *choices(unsigned report, const char *option)
{
	PyObject *list = PyList_New(0);
	const char *choice;
	for (unsigned k = 0; list && (choice = opscope_report_choice(report, option, k)); k++) {
		PyObject *s = text_or_none(choice);
		if (!s || PyList_Append(list, s) < 0)
			Py_CLEAR(list);
		Py_XDECREF(s);
	}
	return list;
}

static PyObject *core_reports(PyObject *module, PyObject *none)
{
	PyObject *list = PyList_New(0);
	for (unsigned i = 0; list && i < opscope_reports(); i++) {
		PyObject *facts = Py_BuildValue("(sssNN)", opscope_report_name(i), opscope_report_title(i), opscope_report_help(i), choices(i, "group-by"),
		                                choices(i, "compat"));
		if (!facts || PyList_Append(list, facts) < 0)
			Py_CLEAR(list);
		Py_XDECREF(facts);
	}
	return list;
}

static PyMethodDef functions[] = {
	{"open", core_open, METH_VARARGS, "open(path, options, progress=None): Profile. progress(done_bytes, total_bytes) is called now and then, with total_bytes 0 where that is not known."},
	{"open_job", core_open_job, METH_VARARGS, "open_job(path, options): Job; None where it is no job of several ranks."},
	{"reports", core_reports, METH_NOARGS, "(name, title, help, group_by choices, compat choices) of each report."},
	{0},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "opscope._core",
	.m_doc = "The C library of opscope.",
	.m_size = -1,
	.m_methods = functions,
};

/* AddObject takes the reference only when it succeeds; the module keeps one, and we do. */
static int add(PyObject *module, const char *name, PyObject *object)
{
	Py_XINCREF(object);
	if (object && PyModule_AddObject(module, name, object) == 0)
		return 0;
	Py_XDECREF(object);
	return -1;
}

/* Its `code` is "usage" unless an error says otherwise. */
static PyObject *new_error_type(void)
{
	PyObject *defaults = Py_BuildValue("{ss}", "code", "usage");
	PyObject *type = defaults ? PyErr_NewExceptionWithDoc("opscope.Error",
	                                                      "What went wrong, where, and what was expected, in one line. code: \"io\", \"format\" (the bytes are not "
	                                                      "what they claim to be), \"usage\" (there is no such thing), \"lacks\" (the input is sound but lacks what "
	                                                      "was asked for) or \"limit\".", PyExc_ValueError, defaults) : NULL;
	Py_XDECREF(defaults);
	return type;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
	PyObject *module = PyModule_Create(&definition);
	if (!module)
		return NULL;
	error_type = new_error_type();
	bad_bytes = bad_byte_map();
	profile_type = (PyTypeObject *)PyType_FromSpec(&profile_spec);
	table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
	job_type = (PyTypeObject *)PyType_FromSpec(&job_spec);
	if (!bad_bytes || add(module, "Error", error_type) < 0 || add(module, "Profile", (PyObject *)profile_type) < 0 ||
	    add(module, "Table", (PyObject *)table_type) < 0 || add(module, "Job", (PyObject *)job_type) < 0 || PyModule_AddStringConstant(module, "version", opscope_version()) < 0) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
