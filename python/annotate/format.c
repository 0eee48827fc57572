#include "format.h"

#include <string.h>

static const struct format *const formats[] = {&format_own, &format_pyprof, &format_dlprof};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const struct format *format_named(const char *name)
{
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

PyObject *format_names(void)
{
	PyObject *names = PyTuple_New(FORMATS);
	for (int i = 0; names && i < FORMATS; i++) {
		PyObject *name = PyUnicode_FromString(formats[i]->name);
		if (name)
			PyTuple_SET_ITEM(names, i, name);
		else
			Py_CLEAR(names);
	}
	return names;
}
