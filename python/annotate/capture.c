#include "annotate.h"
#include <opscope/capture.h>

#include <string.h>

/* The path of the library that records; from the first begin on. */
static char *library;

/* The errno becomes an OSError of its class, as PermissionError. */
static PyObject *refuse(int error, PyObject *path)
{
	errno = -error;
	return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

static PyObject *cannot_load(const char *path)
{
	const char *why = dlerror();
	PyErr_Format(PyExc_OSError, "%s: %s", path, why ? why : "it is older than this package, or another library");
	return NULL;
}

static bool know(const char *path)
{
	char *copy = library && strcmp(library, path) == 0 ? library : strdup(path);
	if (!copy) {
		PyErr_NoMemory();
		return false;
	}
	if (copy != library)
		free(library);
	library = copy;
	return true;
}

PyObject *capture_begin(PyObject *self, PyObject *args)
{
	PyObject *path = NULL, *dir = NULL, *result = NULL;
	struct opscope_capture_options o = {.bytes = sizeof o};
	long long max_bytes;
	int ring, error = 0;
	if (!PyArg_ParseTuple(args, "O&O&Lp", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &dir, &max_bytes, &ring))
		goto done;
	if (!know(PyBytes_AsString(path)))
		goto done;
	o.dir = PyBytes_AsString(dir);
	o.max_bytes = max_bytes;
	o.ring = (uint32_t)ring;
	Py_BEGIN_ALLOW_THREADS
	error = opscope_capture_begin(library, &o);
	Py_END_ALLOW_THREADS
	if (error == -ELIBACC) {
		cannot_load(library);
	} else if (error) {
		refuse(error, dir);
	} else {
		limits_begin();
		sink_capture(true);
		Py_INCREF(Py_None);
		result = Py_None;
	}
done:
	Py_XDECREF(path);
	Py_XDECREF(dir);
	return result;
}

PyObject *capture_end(PyObject *self, PyObject *unused)
{
	int error = -ESRCH;
	sink_capture(false);
	if (library) {
		Py_BEGIN_ALLOW_THREADS
		error = opscope_capture_end(library);
		Py_END_ALLOW_THREADS
	}
	if (error)
		return refuse(error, NULL);
	Py_RETURN_NONE;
}
