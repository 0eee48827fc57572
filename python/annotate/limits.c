#include "limits.h"

#include <opscope/trace.h>

#include <stdint.h>
#include <string.h>

static const struct {
	const char *kind, *text;
	int loss;
} limits[] = {
#define LIMIT(name, kind, loss, text) {kind, "opscope.torch: " text, loss},
	LIMITS(LIMIT)
#undef LIMIT
};

static uint64_t count[LIMITS_ALL];
static uint64_t since_begin[LIMITS_ALL]; /* of a capture of this process's own */

/* The capture has one note of a kind. That of a process that was forked hears of it soon, too. */
void limit_reached(enum limit which)
{
	uint64_t n = ++since_begin[which];
	count[which]++;
	if ((n & (n - 1)) == 0 || n % 64 == 0)
		opscope_note(limits[which].kind, limits[which].text, limits[which].loss);
}

void limits_begin(void) { memset(since_begin, 0, sizeof since_begin); }

PyObject *limits_reached(void)
{
	PyObject *all = PyDict_New();
	for (int i = 0; all && i < LIMITS_ALL; i++) {
		PyObject *n = limits[i].loss && count[i] ? PyLong_FromUnsignedLongLong(count[i]) : NULL;
		if (n && PyDict_SetItemString(all, limits[i].text, n) < 0)
			PyErr_Clear();
		Py_XDECREF(n);
		count[i] = 0;
	}
	PyErr_Clear();
	return all;
}
