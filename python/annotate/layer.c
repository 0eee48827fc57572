/* nn.Module.__call__. A module has the name that the model has for it ("Net.layer1.0.conv1"), asked for once, when the outermost module is called
 * that it belongs to. */
#include "annotate.h"

/* By the module's address; `reference` is weak and says whether it is still the same. */
struct named {
	PyObject *reference;
	char *path;
	struct text *text;
};

static struct table names;

static struct named *named_at(PyObject *module)
{
	uint64_t key = (uintptr_t)module;
	return table_find(&names, &key, 1, hash_words(&key, 1));
}

static struct named *find(PyObject *module)
{
	struct named *n = named_at(module);
	return n && n->reference && is_referent(n->reference, module) ? n : NULL;
}

static void forget(struct named *n)
{
	Py_CLEAR(n->reference);
	PyMem_Free(n->path);
	text_free(n->text);
	*n = (struct named){NULL, NULL, NULL};
}

void layer_forget(void)
{
	for (uint32_t i = 0; i < names.cap; i++)
		if (names.slot[i].hash)
			forget(names.slot[i].value);
}

static const char *class_of(PyObject *module) { return last_name(Py_TYPE(module)->tp_name); }

/* Names the module; `path` is copied. */
static struct named *name_it(PyObject *module, const char *path)
{
	uint64_t key = (uintptr_t)module;
	struct named *n = named_at(module);
	struct line l = {NULL, 0, 0}, copy = {NULL, 0, 0};
	if (!n) {
		if (names.n >= MODULES_MOST)
			limit_reached(LIMIT_MODULES);
		n = names.n < MODULES_MOST ? PyMem_Calloc(1, sizeof *n) : NULL;
		if (!n || !table_add(&names, &key, 1, hash_words(&key, 1), n)) {
			PyMem_Free(n);
			return NULL;
		}
	}
	line_put(&copy, path);
	line_put(&l, "[module]");
	line_put(&l, class_of(module));
	line_put(&l, ": ");
	line_put(&l, path);
	forget(n);
	*n = (struct named){PyWeakref_NewRef(module, NULL), copy.p, line_text(&l)};
	if (!n->reference || !n->path || !n->text)
		forget(n);
	PyErr_Clear();
	return n->text ? n : NULL;
}

/* ---- models ---- */

/* The models that were called. They are not forgotten with the names: a model that is named again has the number that it had, from 1 among those of
 * its class. Both references are weak: a class that the program made lives no longer for having been called. */
static struct root { PyObject *module, *class; uint32_t number; } roots[MODELS_MOST];
static uint32_t n_roots;

static bool is_of(const struct root *r, PyTypeObject *class) { return is_referent(r->class, (PyObject *)class); }

static struct root *root_of(PyObject *module)
{
	for (struct root *r = roots; r < roots + n_roots; r++)
		if (is_referent(r->module, module))
			return r;
	return NULL;
}

/* A place for another model of the class: that of the first one that is gone, whose number is free, or else one of a class that is gone or one that was never
 * used. `number` is the model's; NULL = there is no place. */
static struct root *new_root(PyTypeObject *class, uint32_t *number)
{
	struct root *gone = NULL, *free = NULL;
	*number = 1;
	for (struct root *r = roots; r < roots + n_roots; r++) {
		if (!is_of(r, class))
			free = free || !is_of(r, NULL) ? free : r;
		else if (!is_referent(r->module, NULL))
			++*number;
		else if (!gone || r->number < gone->number)
			gone = r;
	}
	if (gone) {
		*number = gone->number;
		return gone;
	}
	if (free)
		return free;
	if (n_roots < MODELS_MOST)
		return &roots[n_roots++];
	limit_reached(LIMIT_MODELS);
	return NULL;
}

/* Of several models of one class that live at the same time the second is "Net(2)". The number of one that is gone is free. */
static void name_root(PyObject *module, struct line *path)
{
	/* Before it is looked where they are to stand: objects that are made may run code, which calls other models. */
	PyObject *reference = PyWeakref_NewRef(module, NULL), *class = PyWeakref_NewRef((PyObject *)Py_TYPE(module), NULL);
	struct root *r = root_of(module);
	uint32_t number = r ? r->number : 1;
	PyErr_Clear();
	if (!r && reference && class && (r = new_root(Py_TYPE(module), &number)) != NULL) {
		struct root before = *r;
		*r = (struct root){reference, class, number};
		reference = before.module;
		class = before.class;
	}
	Py_XDECREF(reference);
	Py_XDECREF(class);
	line_put(path, class_of(module));
	if (number > 1)
		line_format(path, "(%u)", number);
}

/* The modules inside that have no name yet. */
static void name_inner(PyObject *root, const char *path)
{
	PyObject *pairs = PyObject_CallMethod(root, "named_modules", NULL), *it = pairs ? PyObject_GetIter(pairs) : NULL, *pair;
	struct line l = {NULL, 0, 0};
	while (it && (pair = PyIter_Next(it))) {
		const char *name = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 0)) : NULL;
		PyObject *inner = name ? PyTuple_GET_ITEM(pair, 1) : NULL;
		if (name && *name && inner != root && inner != Py_None && !find(inner)) {
			l.n = 0;
			line_put(&l, path);
			line_put(&l, ".");
			line_put(&l, name);
			if (l.p)
				name_it(inner, l.p);
		}
		Py_DECREF(pair);
	}
	error_clear();
	PyMem_Free(l.p);
	Py_XDECREF(it);
	Py_XDECREF(pairs);
}

static bool is_replica(PyObject *module)
{
	PyObject *flag = PyObject_GetAttrString(module, "_is_replica");
	bool yes = flag == Py_True;
	error_clear();
	Py_XDECREF(flag);
	return yes;
}

/* The key under which `around` holds the module, or its class. */
static void put_key(struct line *l, PyObject *around, PyObject *module)
{
	PyObject *held = PyObject_GetAttrString(around, "_modules"), *key, *value;
	const char *found = NULL;
	Py_ssize_t at = 0;
	while (held && PyDict_Check(held) && !found && PyDict_Next(held, &at, &key, &value))
		if (value == module)
			found = PyUnicode_AsUTF8(key);
	error_clear();
	line_put(l, found ? found : class_of(module));
	Py_XDECREF(held);
}

static struct named *name_new(PyObject *module)
{
	const struct open_layer *around = thread_self.layer;
	struct named *outer = around ? find(around->module) : NULL, *n;
	struct line path = {NULL, 0, 0};
	bool root = !outer && !is_replica(module);
	if (outer) {
		line_put(&path, outer->path);
		line_put(&path, ".");
		put_key(&path, around->module, module);
	} else if (root) {
		name_root(module, &path);
	} else {
		line_put(&path, class_of(module));
	}
	n = path.p ? name_it(module, path.p) : NULL;
	if (n)
		name_inner(module, path.p);
	PyMem_Free(path.p);
	/* What was asked may have forgotten all names, or let another thread do so. */
	return n ? find(module) : NULL;
}

int layer_begin(struct open_layer *l, PyObject *module)
{
	struct thread *t = &thread_self;
	if (!settings.on || !settings.layers || t->busy)
		return 0;
	t->busy = true;
	struct named *n = find(module);
	n = n ? n : name_new(module);
	t->busy = false;
	if (UNLIKELY(error_raise()))
		return -1;
	if (!n)
		return 0;
	*l = (struct open_layer){module, t->layer};
	t->layer = l;
	sink_push(n->text);
	return 1;
}

void layer_end(struct open_layer *l)
{
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	thread_self.layer = l->around;
	sink_pop();
	PyErr_Restore(type, value, trace);
}
