#include "annotate.h"
#include <opscope/capture.h>

#include <string.h>
#include <unistd.h>

/* The path of the library that records; from the first capture on. Texts have that library's numbers: there is no second one. */
static char *library;
/* The process in which a thread begins or ends a capture, without the GIL; 0 = none does. Not that of a forked child, in which the thread is not. */
static pid_t at_work;

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

/* Another thread is beginning or ending a capture; a beginning must not come between the end of another one and what is said of it here. */
static bool is_at_work(void)
{
	return at_work == getpid();
}

/* false with an exception. */
static bool may_be(const char *path)
{
	if (!library || strcmp(library, path) == 0)
		return true;
	PyErr_Format(PyExc_ValueError, "%s: captures of this process are made by %s, and by no other library", path, library);
	return false;
}

static int begin_without_gil(const char *path, const struct opscope_capture_options *o)
{
	int error;
	at_work = getpid();
	Py_BEGIN_ALLOW_THREADS
	error = opscope_capture_begin(path, o);
	Py_END_ALLOW_THREADS
	at_work = 0;
	return error;
}

PyObject *capture_begin(PyObject *self, PyObject *args)
{
	PyObject *path = NULL, *dir = NULL, *result = NULL;
	struct opscope_capture_options o = {.bytes = sizeof o};
	long long max_bytes;
	int ring, error = -EBUSY;
	char *copy = NULL;
	if (!PyArg_ParseTuple(args, "O&O&Lp", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &dir, &max_bytes, &ring))
		goto done;
	if (!may_be(PyBytes_AsString(path)))
		goto done;
	copy = strdup(PyBytes_AsString(path));
	if (!copy) {
		PyErr_NoMemory();
		goto done;
	}
	o.dir = PyBytes_AsString(dir);
	o.max_bytes = max_bytes;
	o.ring = (uint32_t)ring;
	if (!is_at_work())
		error = begin_without_gil(copy, &o);
	if (error == -ELIBACC) {
		cannot_load(copy);
	} else if (error) {
		refuse(error, dir);
	} else {
		if (!library) {
			library = copy;
			copy = NULL;
		}
		limits_begin();
		sink_capture(true);
		Py_INCREF(Py_None);
		result = Py_None;
	}
done:
	free(copy);
	Py_XDECREF(path);
	Py_XDECREF(dir);
	return result;
}

PyObject *capture_end(PyObject *self, PyObject *unused)
{
	int error = is_at_work() ? -EBUSY : -ESRCH;
	if (library && !is_at_work()) {
		at_work = getpid();
		Py_BEGIN_ALLOW_THREADS
		error = opscope_capture_end(library);
		Py_END_ALLOW_THREADS
		at_work = 0;
	}
	/* A capture that could not be ended goes on, and hears what is said. */
	if (!error || error == -ESRCH)
		sink_capture(false);
	if (error)
		return refuse(error, NULL);
	Py_RETURN_NONE;
}
