/* What the backward pass of each call takes, where torch does not say so itself (its emit_nvtx needs CUDA). The node of autograd that a call's
 * result comes from gets a hook that runs before it. The engine runs nodes in the reverse order of their making, so that what runs from that
 * hook to the next one are the nodes that this call made, and the gradients that were accumulated for it.
 *
 * The hook returns None, so that gradients are what they are without it, and the tensor itself is left as it was. */
#include "annotate.h"

#include <structmember.h>

struct mark {
	PyObject_HEAD
	vectorcallfunc call;
	int64_t number;
	const struct text *node;
};

static PyTypeObject *mark_type;
static PyObject *ordered_dict;
static struct table node_names;
static const struct text backward_text = {.p = (char *)"torch.autograd.backward", .n = 23};

/* ---- the hook ---- */

static PyObject *mark_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
	const struct mark *m = (const struct mark *)self;
	struct thread *t = &thread_self;
	/* On a thread on which no call of backward() ends, the range would have no end either. */
	if (t->backward && settings.on && sink_wanted()) {
		if (t->in_node)
			sink_pop();
		sink_push_op(m->node, m->number);
		t->in_node = true;
	}
	Py_RETURN_NONE;
}

bool backward_begin(void)
{
	struct thread *t = &thread_self;
	bool was = t->in_node;
	t->in_node = false;
	t->backward++;
	sink_push(&backward_text);
	return was;
}

void backward_end(bool was_in_node)
{
	PyObject *type, *value, *trace;
	struct thread *t = &thread_self;
	PyErr_Fetch(&type, &value, &trace);
	if (t->in_node)
		sink_pop();
	sink_pop();
	t->backward--;
	t->in_node = was_in_node;
	PyErr_Restore(type, value, trace);
}

/* ---- giving it to nodes ---- */

static bool is_node_name(const char *name)
{
	size_t n = strlen(name);
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n > 8 && memcmp(name + n - 8, "Backward", 8) == 0;
}

/* "AddmmBackward0", as torch calls the node; where its type has no such name, that of the op. Texts are known by the name, not by the type: that one may
 * be the program's, which makes and forgets types as it likes. A longer name than the key holds is cut off. */
static const struct text *node_text(PyTypeObject *type, const char *op)
{
	enum { WORDS = 16, BYTES = WORDS * sizeof(uint64_t) - 1 };
	static const char end[] = "Backward";
	const char *name = last_name(type->tp_name);
	bool good = is_node_name(name);
	union { uint64_t word[WORDS]; char byte[BYTES + 1]; } key;
	size_t most = good ? BYTES : BYTES - strlen(end), n = strnlen(good ? name : op, most);
	uint32_t words = (uint32_t)((n + (good ? 0 : strlen(end))) / sizeof key.word[0] + 1);
	key.word[words - 1] = 0;
	memcpy(key.byte, good ? name : op, n);
	if (!good)
		memcpy(key.byte + n, end, strlen(end));
	uint64_t hash = hash_words(key.word, words);
	struct text *t = table_find(&node_names, key.word, words, hash);
	struct line l = {NULL, 0, 0};
	if (LIKELY(t != NULL))
		return t;
	line_put(&l, key.byte);
	t = line_text(&l);
	if (t && !table_add(&node_names, key.word, words, hash, t)) {
		text_free(t);
		t = NULL;
	}
	return t;
}

static PyObject *mark_new(int64_t number, const struct text *node)
{
	struct mark *m = PyObject_New(struct mark, mark_type);
	if (m) {
		m->call = mark_call;
		m->number = number;
		m->node = node;
	}
	return (PyObject *)m;
}

/* {mark: mark} */
static PyObject *hooks_of(int64_t number, const struct text *node)
{
	PyObject *hooks = PyObject_CallNoArgs(ordered_dict);
	PyObject *m = hooks ? mark_new(number, node) : NULL;
	if (!m || PyObject_SetItem(hooks, m, m) < 0)
		Py_CLEAR(hooks);
	Py_XDECREF(m);
	return hooks;
}

/* torch takes hooks from the tensor's own list: ours stands there only for that moment. */
static void register_hooks(PyObject *tensor, PyObject *node, PyObject *hooks)
{
	static PyObject *list, *method;
	if (!list) {
		list = PyUnicode_InternFromString("_backward_hooks");
		method = PyUnicode_InternFromString("_register_hook_dict");
	}
	PyObject *had = list && method ? PyObject_GetAttr(tensor, list) : NULL;
	if (had && PyObject_SetAttr(tensor, list, hooks) == 0) {
		PyObject *args[2] = {node, tensor};
		PyObject *done = PyObject_VectorcallMethod(method, args, 2, NULL);
		error_clear();
		Py_XDECREF(done);
		if (PyObject_SetAttr(tensor, list, had) < 0)
			error_clear();
	}
	Py_XDECREF(had);
}

/* ---- what has a hook ---- */

/* A node that has its hook says so in its metadata, a dict that torch keeps with each node: its Python object comes and goes. */
static PyObject *metadata_of(PyObject *node, PyObject **key)
{
	static PyObject *name, *own;
	if (!name) {
		name = PyUnicode_InternFromString("metadata");
		own = PyUnicode_InternFromString("opscope");
	}
	PyObject *metadata = name && own ? PyObject_GetAttr(node, name) : NULL;
	if (metadata && !PyDict_Check(metadata))
		Py_CLEAR(metadata);
	error_clear();
	*key = own;
	return metadata;
}

/* Whether it had none yet; from now on it has. */
static bool first_time(PyObject *node)
{
	PyObject *key, *metadata = metadata_of(node, &key);
	bool first = metadata && !PyDict_Contains(metadata, key) && PyDict_SetItem(metadata, key, Py_True) == 0;
	error_clear();
	Py_XDECREF(metadata);
	return first;
}

/* New reference, NULL = none: what made the tensor has no backward pass. */
static PyObject *node_of(PyObject *tensor)
{
	static PyObject *grad_fn;
	if (!grad_fn)
		grad_fn = PyUnicode_InternFromString("grad_fn");
	overrides_hide(tensor);
	PyObject *node = grad_fn ? PyObject_GetAttr(tensor, grad_fn) : NULL;
	if (node == Py_None)
		Py_CLEAR(node);
	error_clear();
	return node;
}

/* ---- of what is wrapped ---- */

/* All that was given to the call has been looked at before it: a node without a hook was made by the call, which may hand on what it was given,
 * or what it got from a wrapped function that it called. */
static void link_one(const struct wrapper *w, PyObject *tensor, int64_t number)
{
	PyObject *node = node_of(tensor);
	const struct text *text = node && first_time(node) ? node_text(Py_TYPE(node), w->op) : NULL;
	PyObject *hooks = text ? hooks_of(number, text) : NULL;
	if (hooks)
		register_hooks(tensor, node, hooks);
	error_clear();
	Py_XDECREF(hooks);
	Py_XDECREF(node);
}

void backward_link(const struct wrapper *w, PyObject *result, int64_t number)
{
	PyObject *one;
	if (is_tensor(result))
		link_one(w, result, number);
	for (Py_ssize_t i = 0; next_item(result, &i, &one);) {
		if (PyTuple_Check(one) && PyTuple_GET_SIZE(one))
			one = PyTuple_GET_ITEM(one, 0);
		Py_INCREF(one);
		if (is_tensor(one))
			link_one(w, one, number);
		Py_DECREF(one);
	}
}

/* ---- of what is not ---- */

static bool is_accumulation(PyObject *node) { return strcmp(last_name(Py_TYPE(node)->tp_name), "AccumulateGrad") == 0; }

static void hook_node(PyObject *node, int64_t number)
{
	static PyObject *method;
	if (!method)
		method = PyUnicode_InternFromString("register_prehook");
	const struct text *text = node_text(Py_TYPE(node), last_name(Py_TYPE(node)->tp_name));
	PyObject *mark = text && method ? mark_new(number, text) : NULL;
	if (mark) {
		PyObject *args[2] = {node, mark};
		PyObject *done = PyObject_VectorcallMethod(method, args, 2, NULL);
		Py_XDECREF(done);
		Py_DECREF(mark);
	}
	error_clear();
}

/* Appends those nodes before this one that have no hook. */
static void add_before(PyObject *list, PyObject *node)
{
	static PyObject *name;
	if (!name)
		name = PyUnicode_InternFromString("next_functions");
	PyObject *before = name ? PyObject_GetAttr(node, name) : NULL;
	for (Py_ssize_t i = 0; before && PyTuple_Check(before) && i < PyTuple_GET_SIZE(before); i++) {
		PyObject *pair = PyTuple_GET_ITEM(before, i);
		PyObject *one = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) ? PyTuple_GET_ITEM(pair, 0) : Py_None;
		if (one != Py_None && !is_accumulation(one) && first_time(one) && PyList_Append(list, one) < 0)
			break;
	}
	error_clear();
	Py_XDECREF(before);
}

/* The tensor's node and those before it that nothing wrapped has made: each gets a hook, so that its time is not that of the node before it. */
static void mark_one(PyObject *tensor, int64_t number)
{
	PyObject *node = node_of(tensor);
	PyObject *list = node && !is_accumulation(node) && first_time(node) ? PyList_New(0) : NULL;
	if (list && PyList_Append(list, node) == 0)
		for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
			hook_node(PyList_GET_ITEM(list, i), number);
			add_before(list, PyList_GET_ITEM(list, i));
		}
	error_clear();
	Py_XDECREF(list);
	Py_XDECREF(node);
}

void backward_inputs(PyObject *const *args, Py_ssize_t n)
{
	const struct open_call *around = thread_self.call;
	int64_t number = around ? around->number : -1;
	PyObject *item;
	for (Py_ssize_t i = 0; i < n; i++) {
		if (is_tensor(args[i]))
			mark_one(args[i], number);
		for (Py_ssize_t k = 0; next_item(args[i], &k, &item);)
			if (is_tensor(item)) {
				Py_INCREF(item);
				mark_one(item, number);
				Py_DECREF(item);
			}
	}
}

/* ---- the type ---- */

static void mark_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyMemberDef mark_members[] = {
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct mark, call), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};
static PyType_Slot mark_slots[] = {
	{Py_tp_dealloc, mark_dealloc}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, mark_members}, {0, NULL},
};
static PyType_Spec mark_spec = {
	"opscope._annotate.mark", sizeof(struct mark), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, mark_slots,
};

int backward_ready(PyObject *module)
{
	PyObject *collections = PyImport_ImportModule("collections");
	ordered_dict = collections ? PyObject_GetAttrString(collections, "OrderedDict") : NULL;
	Py_XDECREF(collections);
	mark_type = ordered_dict ? (PyTypeObject *)PyType_FromSpec(&mark_spec) : NULL;
	if (!mark_type)
		return -1;
	mark_type->tp_new = NULL; /* only hooks_of makes them */
	return 0;
}
