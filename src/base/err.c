#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	if (!e)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	e->code = code;
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int err_nomem(struct err *e)
{
	return err_set(e, ERR_NOMEM, "out of memory");
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -1;
	char joined[sizeof e->msg];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(joined, sizeof joined, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof joined)
		return -1;
	snprintf(joined + n, sizeof joined - (size_t)n, ": %.*s", (int)(sizeof joined - (size_t)n - 3), e->msg);
	memcpy(e->msg, joined, sizeof joined);
	return -1;
}
