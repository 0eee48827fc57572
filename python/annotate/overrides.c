/* Programs hear what tensors are asked, by a method __torch_function__ of a class of tensors or of a mode. Our own questions are hidden from them: the first
 * one of a call that somebody would hear makes a context in which nobody does, which goes when the call has been written down. Plain tensors, without a
 * mode, cost a look at their class. */
#include "annotate.h"

/* As opscope/torch.py gives them; NULL = torch has none. */
static struct {
	PyObject *plain;      /* tuple of classes whose objects tell nobody what they are asked */
	PyObject *heard;      /* heard(None): whether a mode hears all; asked for each call, as directly as can be */
	PyCFunction heard_c;  /* the same, where it is a function in C of one argument */
	PyObject *guard;      /* makes a context in which nobody hears */
	PyObject *set_mode, *get_mode; /* where the guard leaves the mode as it is, as before torch 2.0 */
} torch;

static PyObject *enter, *leave;

PyObject *overrides(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"plain", "heard", "guard", "set_mode", "get_mode", NULL};
	PyObject *given[5] = {NULL, NULL, NULL, NULL, NULL}, **const kept[5] = {&torch.plain, &torch.heard, &torch.guard, &torch.set_mode, &torch.get_mode};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOO", names, &PyTuple_Type, &given[0], &given[1], &given[2], &given[3], &given[4]))
		return NULL;
	enter = enter ? enter : PyUnicode_InternFromString("__enter__");
	leave = leave ? leave : PyUnicode_InternFromString("__exit__");
	if (!enter || !leave)
		return NULL;
	for (int i = 0; i < 5; i++) {
		PyObject *o = given[i] == Py_None ? NULL : given[i];
		Py_XINCREF(o);
		Py_XSETREF(*kept[i], o);
	}
	bool direct = torch.heard && PyCFunction_Check(torch.heard) && PyCFunction_GET_FLAGS(torch.heard) == METH_O;
	torch.heard_c = direct ? PyCFunction_GET_FUNCTION(torch.heard) : NULL;
	Py_RETURN_NONE;
}

static void done(PyObject *result)
{
	if (!result)
		error_clear();
	Py_XDECREF(result);
}

void overrides_begin(void)
{
	PyObject *heard = NULL;
	if (LIKELY(torch.heard_c != NULL))
		heard = torch.heard_c(PyCFunction_GET_SELF(torch.heard), Py_None);
	else if (torch.heard)
		heard = PyObject_CallOneArg(torch.heard, Py_None);
	thread_self.mode = heard == Py_True;
	done(heard);
}

static bool is_plain(const PyObject *tensor)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(torch.plain); i++)
		if ((PyObject *)Py_TYPE(tensor) == PyTuple_GET_ITEM(torch.plain, i))
			return true;
	return false;
}

void overrides_hide(const PyObject *tensor)
{
	struct thread *t = &thread_self;
	if (LIKELY(!torch.guard || t->guard || (!t->mode && is_plain(tensor))))
		return;
	t->guard = PyObject_CallNoArgs(torch.guard);
	done(t->guard ? PyObject_CallMethodNoArgs(t->guard, enter) : NULL);
	if (!t->mode || !torch.set_mode || !torch.get_mode)
		return;
	t->hidden_mode = PyObject_CallNoArgs(torch.get_mode);
	done(t->hidden_mode ? PyObject_CallOneArg(torch.set_mode, Py_None) : NULL);
}

void overrides_end(void)
{
	struct thread *t = &thread_self;
	PyObject *guard = t->guard, *mode = t->hidden_mode;
	if (LIKELY(!guard))
		return;
	t->guard = t->hidden_mode = NULL;
	if (mode)
		done(PyObject_CallOneArg(torch.set_mode, mode));
	done(PyObject_CallMethodObjArgs(guard, leave, Py_None, Py_None, Py_None, NULL));
	Py_XDECREF(mode);
	Py_DECREF(guard);
}
