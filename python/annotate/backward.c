/* What the backward pass of each call takes, where torch does not say so itself (its emit_nvtx needs CUDA). The node of autograd that a call's
 * result comes from gets a hook that runs before it. The engine runs nodes in the reverse order of their making, so that what runs from that
 * hook to the next one are the nodes that this call made, and the gradients that were accumulated for it.
 *
 * The hook returns None, so that gradients are what they are without it, and the tensor itself is left as it was. */
#include "annotate.h"

#include <structmember.h>

struct call {
	struct wrapper *w;
	PyObject *const *args;   /* positional ones, then those with names */
	Py_ssize_t n;
	int64_t number;
	Py_ssize_t from, to;     /* what was called inside of it in the thread's list of results */
};

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

/* {mark: mark} */
static PyObject *hooks_of(int64_t number, const struct text *node)
{
	PyObject *hooks = PyObject_CallNoArgs(ordered_dict);
	struct mark *m = hooks ? PyObject_New(struct mark, mark_type) : NULL;
	if (m) {
		m->call = mark_call;
		m->number = number;
		m->node = node;
		if (PyObject_SetItem(hooks, (PyObject *)m, (PyObject *)m) < 0)
			Py_CLEAR(hooks);
		Py_DECREF(m);
	} else {
		Py_CLEAR(hooks);
	}
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

static bool is_given(PyObject *tensor, PyObject *const *args, Py_ssize_t n)
{
	PyObject *item;
	for (Py_ssize_t i = 0; i < n; i++) {
		if (args[i] == tensor)
			return true;
		for (Py_ssize_t k = 0; next_item(args[i], &k, &item);)
			if (item == tensor)
				return true;
	}
	return false;
}

/* F.elu(x, inplace=True) */
static bool is_told_in_place(PyObject *const *args, Py_ssize_t n)
{
	for (Py_ssize_t i = 0; i < n; i++)
		if (args[i] == Py_True)
			return true;
	return false;
}

/* `last` is the node that has got a hook last: parts of one tensor come from one node. Whether that of this one has one. */
static bool link_one(struct call *c, PyObject *tensor, PyObject **last)
{
	static PyObject *grad_fn;
	/* What only hands on its argument made no node: dropout while evaluating, contiguous(). */
	if (is_given(tensor, c->args, c->n) && !c->w->in_place && !is_told_in_place(c->args, c->n))
		return false;
	if (!grad_fn)
		grad_fn = PyUnicode_InternFromString("grad_fn");
	overrides_hide(tensor);
	PyObject *node = grad_fn ? PyObject_GetAttr(tensor, grad_fn) : NULL;
	bool links = node && node != Py_None && node != *last;
	const struct text *text = links ? node_text(Py_TYPE(node), c->w->op) : NULL;
	PyObject *hooks = text ? hooks_of(c->number, text) : NULL;
	if (hooks)
		register_hooks(tensor, node, hooks);
	bool hooked = hooks || (node && node != Py_None && node == *last);
	error_clear();
	if (links)
		Py_XSETREF(*last, node);
	else
		Py_XDECREF(node);
	Py_XDECREF(hooks);
	return hooked;
}

/* ---- what has a hook ---- */

/* What a wrapped function got from those that it called has their hooks already, and hands it on: alone, in a tuple, or what it got long before. Results
 * are known by weak references, in a list that has those of each call that goes on behind those of the one around it. */

Py_ssize_t backward_linked(void)
{
	const PyObject *linked = thread_self.linked;
	return linked ? PyList_GET_SIZE(linked) : 0;
}

/* Takes out those from `from` to before `to`. */
static void cut(Py_ssize_t from, Py_ssize_t to)
{
	if (to > from && PyList_SetSlice(thread_self.linked, from, to, NULL) < 0)
		PyErr_Clear();
}

void backward_forget(const struct open_call *call)
{
	struct thread *t = &thread_self;
	if (t->call)
		cut(call->linked, backward_linked());
	else
		Py_CLEAR(t->linked);
}

/* Takes out what is gone of those of a call that goes on: it may go on for as long as a program trains. */
static void tidy(struct open_call *call)
{
	PyObject *linked = thread_self.linked;
	Py_ssize_t kept = call->linked, n = PyList_GET_SIZE(linked);
	for (Py_ssize_t i = kept; i < n; i++) {
		PyObject *one = PyList_GET_ITEM(linked, i);
		if (is_referent(one, NULL))
			continue;
		PyList_SET_ITEM(linked, i, PyList_GET_ITEM(linked, kept));
		PyList_SET_ITEM(linked, kept++, one);
	}
	cut(kept, n);
	call->tidy_at = 2 * (kept - call->linked) + LINKED_FEW;
}

/* For the call around, if there is one. */
static void note_hook(PyObject *tensor)
{
	struct thread *t = &thread_self;
	if (!t->call)
		return;
	if (!t->linked)
		t->linked = PyList_New(0);
	PyObject *reference = t->linked ? PyWeakref_NewRef(tensor, NULL) : NULL;
	if (reference && PyList_Append(t->linked, reference) < 0)
		Py_CLEAR(reference);
	PyErr_Clear();
	Py_XDECREF(reference);
}

/* Whether a call inside of this one has given the tensor's node its hook. */
static bool has_hook(const struct call *c, const PyObject *tensor)
{
	for (Py_ssize_t i = c->from; i < c->to; i++)
		if (is_referent(PyList_GET_ITEM(thread_self.linked, i), tensor))
			return true;
	return false;
}

static void link_result(struct call *c, PyObject *tensor, PyObject **last)
{
	if (has_hook(c, tensor) || link_one(c, tensor, last))
		note_hook(tensor);
}

void backward_link(struct wrapper *w, const struct open_call *call, PyObject *const *args, Py_ssize_t n, PyObject *result, int64_t number)
{
	struct call c = {w, args, n, number, call->linked, backward_linked()};
	struct thread *t = &thread_self;
	PyObject *one, *last = NULL;
	if (is_tensor(result))
		link_result(&c, result, &last);
	for (Py_ssize_t i = 0; next_item(result, &i, &one);) {
		if (PyTuple_Check(one) && PyTuple_GET_SIZE(one))
			one = PyTuple_GET_ITEM(one, 0);
		Py_INCREF(one);
		if (is_tensor(one))
			link_result(&c, one, &last);
		Py_DECREF(one);
	}
	Py_XDECREF(last);
	if (t->call) {
		cut(c.from, c.to);
		if (backward_linked() - t->call->linked > t->call->tidy_at)
			tidy(t->call);
	} else {
		Py_CLEAR(t->linked);
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
