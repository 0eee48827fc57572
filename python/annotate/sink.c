#include "annotate.h"
#include "nvtx.h"
#include <opscope/trace.h>
#include <opscope/wire.h>

static struct nvtx nvtx;
static PyObject *copied;   /* list, or NULL */
static enum listener listener;
static bool asked;

enum listener sink_listener(void)
{
	if (!asked) {
		asked = true;
		nvtx = nvtx_find();
		listener = opscope_is_recording() ? LISTENER_OPSCOPE : nvtx.push && nvtx.pop ? LISTENER_NVTX : LISTENER_NONE;
	}
	return listener;
}

void sink_capture(bool on)
{
	static enum listener before;
	static bool is_on;
	if (on == is_on)
		return;
	if (on)
		before = sink_listener();
	else
		__atomic_store_n(&opscope_trace_found, &opscope_trace_nobody, __ATOMIC_RELEASE);
	is_on = on;
	listener = on ? LISTENER_OPSCOPE : before;
}

/* PyProf's markers are ranges of NVTX whoever listens. */
static const struct opscope_trace_table *own(void)
{
	return settings.format->in_library ? opscope_trace() : NULL;
}

bool sink_wanted(void)
{
	const struct opscope_trace_table *t = opscope_trace();
	return copied || (t ? t->wanted() != 0 : listener != LISTENER_NONE);
}

/* ---- the copy for tests ---- */

void sink_copy(PyObject *list)
{
	Py_XINCREF(list);
	Py_XSETREF(copied, list);
}

static void copy(PyObject *item)
{
	if (!item || PyList_Append(copied, item) < 0)
		PyErr_Clear();
	Py_XDECREF(item);
}

static void copy_numbers(const char *key, const int64_t *values, int n)
{
	PyObject *list = PyList_New(0);
	for (int i = 0; list && i < n; i++) {
		PyObject *v = PyLong_FromLongLong(values[i]);
		if (!v || PyList_Append(list, v) < 0)
			PyErr_Clear();
		Py_XDECREF(v);
	}
	if (list)
		copy(Py_BuildValue("(ssN)", "arg", key, list));
}

/* ---- ranges ---- */

void sink_push(const struct text *t)
{
	const struct opscope_trace_table *o = own();
	thread_self.open++;
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(ss#)", "push", t->p, (Py_ssize_t)t->n));
	if (o)
		o->push(0, t->name, t->name ? NULL : t->p);
	else if (nvtx.push)
		nvtx.push(t->p);
}

void sink_push_op(const struct text *t, int64_t number)
{
	const struct opscope_trace_table *o = own();
	thread_self.open++;
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(ss#L)", "push", t->p, (Py_ssize_t)t->n, (long long)number));
	if (o && number >= 0)
		o->push_op(0, t->name, t->name ? NULL : t->p, number & INT32_MAX);
	else if (o)
		o->push(0, t->name, t->name ? NULL : t->p);
	else if (nvtx.push)
		nvtx.push(t->p);
}

void sink_pop(void)
{
	const struct opscope_trace_table *o = own();
	if (LIKELY(thread_self.open))
		thread_self.open--;
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(s)", "pop"));
	if (o)
		o->pop(0);
	else if (nvtx.pop)
		nvtx.pop();
}

/* The number of a range that nobody else has given one. */
#define UNHEARD ((uint64_t)1 << 63)

uint64_t sink_start(const struct text *t)
{
	static uint64_t unheard = UNHEARD;
	const struct opscope_trace_table *o = own();
	uint64_t range = o ? o->start(0, t->name, t->name ? NULL : t->p) : nvtx.start ? nvtx.start(t->p) : ++unheard;
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(ss#K)", "start", t->p, (Py_ssize_t)t->n, (unsigned long long)range));
	return range;
}

void sink_end(uint64_t range)
{
	const struct opscope_trace_table *o = own();
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(sK)", "end", (unsigned long long)range));
	if (range & UNHEARD)
		return;
	if (o)
		o->end(0, range);
	else if (nvtx.end)
		nvtx.end(range);
}

void sink_leaving(void)
{
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(s)", "leaving"));
	opscope_leaving();
}

/* ---- arguments ---- */

/* Keys are few and are always the same pointers. */
static uint32_t key_name(const struct opscope_trace_table *o, const char *key)
{
	static struct {
		const char *key;
		uint32_t name;
	} known[8];
	int i = 0;
	while (i < 8 && known[i].key && known[i].key != key)
		i++;
	if (i == 8)
		return o->name(key);
	if (!known[i].key) {
		known[i].name = o->name(key);
		known[i].key = key;
	}
	return known[i].name;
}

void sink_arg_text(const char *key, const struct text *value)
{
	const struct opscope_trace_table *o = own();
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(sss#)", "arg", key, value->p, (Py_ssize_t)value->n));
	if (o && value->name)
		o->arg_name(0, key_name(o, key), WIRE_ARG_TEXT, value->name);
	else if (o)
		o->arg_text(0, key, value->p);
}

void sink_arg_number(const char *key, int64_t value)
{
	const struct opscope_trace_table *o = own();
	if (UNLIKELY(copied != NULL))
		copy(Py_BuildValue("(ssL)", "arg", key, (long long)value));
	if (o)
		o->arg_name(0, key_name(o, key), WIRE_ARG_I64, (uint64_t)value);
}

void sink_arg_numbers(const char *key, const int64_t *values, int n)
{
	const struct opscope_trace_table *o = own();
	if (UNLIKELY(copied != NULL))
		copy_numbers(key, values, n);
	if (o)
		o->arg_i64s(0, key_name(o, key), values, (uint32_t)n);
}
