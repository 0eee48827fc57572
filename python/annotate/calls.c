/* Which call made which tensor. A tensor is known by its object, as long as that lives. */
#include "annotate.h"

enum { PLACES = 1 << 13, NAMES = 1 << 13 };

static struct made {
	PyObject *tensor;      /* compared only */
	PyObject *reference;   /* weak: dead when another object stands at that address */
	int64_t call;
} made[PLACES];

static struct named {
	int64_t call;
	const struct text *functions;
} named[NAMES];

static struct made *place_of(PyObject *tensor)
{
	return &made[((uintptr_t)tensor >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (PLACES - 1)];
}

int64_t calls_maker(PyObject *tensor)
{
	const struct made *m = place_of(tensor);
	return m->tensor == tensor && m->reference && is_referent(m->reference, tensor) ? m->call : -1;
}

static void made_one(PyObject *tensor, int64_t number)
{
	struct made *m = place_of(tensor);
	if (m->tensor != tensor || !m->reference || !is_referent(m->reference, tensor)) {
		PyObject *reference = PyWeakref_NewRef(tensor, NULL), *before = m->reference;
		if (!reference) {
			PyErr_Clear();
			return;
		}
		m->reference = reference;
		m->tensor = tensor;
		Py_XDECREF(before);
	}
	m->call = number;
}

void calls_made(PyObject *result, int64_t number)
{
	if (is_tensor(result)) {
		made_one(result, number);
	} else if (PyTuple_Check(result) || PyList_Check(result)) {
		for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++)
			if (is_tensor(PySequence_Fast_GET_ITEM(result, i)))
				made_one(PySequence_Fast_GET_ITEM(result, i), number);
	}
}

static int add_maker(PyObject *o, int64_t *numbers, int n, int most)
{
	int64_t maker = calls_maker(o);
	for (int i = 0; i < n; i++)
		if (numbers[i] == maker)
			return n;
	if (n < most)
		numbers[n++] = maker;
	return n;
}

int calls_inputs(PyObject *const *args, Py_ssize_t n, int64_t *numbers, int most)
{
	int found = 0;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = args[i];
		if (is_tensor(o))
			found = add_maker(o, numbers, found, most);
		for (Py_ssize_t k = 0; (PyTuple_Check(o) || PyList_Check(o)) && k < PySequence_Fast_GET_SIZE(o); k++)
			if (is_tensor(PySequence_Fast_GET_ITEM(o, k)))
				found = add_maker(PySequence_Fast_GET_ITEM(o, k), numbers, found, most);
	}
	return found;
}

void calls_name(int64_t number, const struct text *functions)
{
	named[number & (NAMES - 1)] = (struct named){number, functions};
}

const struct text *calls_name_of(int64_t number)
{
	const struct named *n = number < 0 ? NULL : &named[number & (NAMES - 1)];
	return n && n->call == number ? n->functions : NULL;
}
