#include "format.h"

#include <string.h>

#define FORMAT(name) &format_##name,
static const struct format *const formats[] = {FORMATS(FORMAT)};
#undef FORMAT
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

const struct format *format_named(const char *name)
{
	for (int i = 0; i < N_FORMATS; i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

PyObject *format_names(void)
{
	PyObject *names = PyTuple_New(N_FORMATS);
	for (int i = 0; names && i < N_FORMATS; i++) {
		PyObject *name = PyUnicode_FromString(formats[i]->name);
		if (name)
			PyTuple_SET_ITEM(names, i, name);
		else
			Py_CLEAR(names);
	}
	return names;
}
