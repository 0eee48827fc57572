/* Which call made which tensor. A tensor is known by its object, as long as that lives. */
#include "annotate.h"

enum { PLACES = 1 << 13, NEAR = 8 /* places where a tensor may stand */, NAMES = 1 << 13 };

static struct made {
	PyObject *tensor;      /* compared only */
	PyObject *reference;   /* weak: dead when another object stands at that address */
	int64_t call;
	const struct text *functions;
} made[PLACES];

/* Of the last calls, until they have made something. */
static struct named {
	int64_t call;
	const struct text *functions;
} named[NAMES];

/* The i-th place where the tensor may stand. */
static struct made *place_of(PyObject *tensor, unsigned i)
{
	return &made[((((uintptr_t)tensor >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) + i) & (PLACES - 1)];
}

static struct made *find(PyObject *tensor)
{
	for (unsigned i = 0; i < NEAR; i++) {
		struct made *m = place_of(tensor, i);
		if (m->tensor == tensor && m->reference && is_referent(m->reference, tensor))
			return m;
	}
	return NULL;
}

/* A place where none stands that lives; else that of the oldest call. */
static struct made *room_for(PyObject *tensor)
{
	struct made *oldest = place_of(tensor, 0);
	for (unsigned i = 0; i < NEAR; i++) {
		struct made *m = place_of(tensor, i);
		if (!m->reference || is_referent(m->reference, NULL))
			return m;
		oldest = m->call < oldest->call ? m : oldest;
	}
	limit_reached(LIMIT_MAKERS);
	return oldest;
}

int64_t calls_maker(PyObject *tensor)
{
	const struct made *m = find(tensor);
	return m ? m->call : -1;
}

const struct text *calls_maker_name(PyObject *tensor)
{
	const struct made *m = find(tensor);
	return m ? m->functions : NULL;
}

static const struct text *name_of(int64_t number)
{
	const struct named *n = &named[number & (NAMES - 1)];
	if (n->call > number) /* so many calls were inside of this one */
		limit_reached(LIMIT_MAKERS);
	return n->call == number ? n->functions : NULL;
}

static void made_one(PyObject *tensor, int64_t number)
{
	struct made *m = find(tensor);
	if (!m) {
		Py_INCREF(tensor); /* the reference is an object of the garbage collector's, which may run code */
		PyObject *reference = PyWeakref_NewRef(tensor, NULL);
		Py_DECREF(tensor);
		if (!reference) {
			PyErr_Clear();
			return;
		}
		m = room_for(tensor);
		m->tensor = tensor;
		Py_XSETREF(m->reference, reference);
	}
	m->call = number;
	m->functions = name_of(number);
}

void calls_made(PyObject *result, int64_t number)
{
	PyObject *item;
	if (is_tensor(result))
		made_one(result, number);
	else
		for (Py_ssize_t i = 0; next_item(result, &i, &item);)
			if (is_tensor(item))
				made_one(item, number);
}

static int add_maker(PyObject *o, int64_t *numbers, int n)
{
	int64_t maker = calls_maker(o);
	for (int i = 0; i < n; i++)
		if (numbers[i] == maker)
			return n;
	if (n < INPUTS_MOST)
		numbers[n++] = maker;
	else
		limit_reached(LIMIT_INPUTS);
	return n;
}

int calls_inputs(PyObject *const *args, Py_ssize_t n, int64_t numbers[INPUTS_MOST])
{
	int found = 0;
	PyObject *item;
	for (Py_ssize_t i = 0; i < n; i++) {
		if (is_tensor(args[i]))
			found = add_maker(args[i], numbers, found);
		for (Py_ssize_t k = 0; next_item(args[i], &k, &item);)
			if (is_tensor(item))
				found = add_maker(item, numbers, found);
	}
	return found;
}

void calls_name(int64_t number, const struct text *functions)
{
	named[number & (NAMES - 1)] = (struct named){number, functions};
}
