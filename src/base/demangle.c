#include "base/demangle.h"

#ifdef HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#include <setjmp.h>

struct sink {
	struct buf *out;
	size_t limit; /* of out->n */
	jmp_buf full;
};

/* The demangler keeps all it has on the stack, so that leaving it in the middle loses nothing. */
static void demangle_put(const char *text, size_t n, void *context)
{
	struct sink *s = context;
	if (n > s->limit - s->out->n)
		longjmp(s->full, 1);
	buf_put(s->out, text, n);
}

/* In a function of its own: setjmp makes locals of its caller unsure. */
static int demangle_run(const char *name, struct sink *s)
{
	if (setjmp(s->full))
		return 0;
	return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT, demangle_put, s);
}

static enum demangled demangle_now(const char *name, struct buf *out)
{
	struct sink s = {.out = out, .limit = out->n + DEMANGLE_OUT_MAX};
	size_t before = out->n;
	if (demangle_run(name, &s))
		return DEMANGLE_DONE;
	out->n = before;
	return DEMANGLE_FAILED;
}
#else
static enum demangled demangle_now(const char *name, struct buf *out)
{
	(void)name, (void)out;
	return DEMANGLE_ABSENT;
}
#endif

enum demangled demangle(struct str name, struct buf *out)
{
	char text[DEMANGLE_IN_MAX + 1];
	if (!str_starts(name, STR("_Z")))
		return DEMANGLE_NO;
	if (name.n > DEMANGLE_IN_MAX || memchr(name.p, 0, name.n))
		return DEMANGLE_FAILED;
	memcpy(text, name.p, name.n);
	text[name.n] = 0;
	return demangle_now(text, out);
}
