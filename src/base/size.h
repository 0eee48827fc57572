/* Sizes as options have them: "8", "8G" gibibytes, "500M" mebibytes. */
#ifndef OPSCOPE_BASE_SIZE_H
#define OPSCOPE_BASE_SIZE_H

#include "base/str.h"

#include <stdbool.h>

/* What was expected, for messages. */
#define SIZE_EXPECTED "a number of gibibytes was expected, or one of mebibytes like 500M"

/* False: it is none, or less than 1 or more than 2^20 of its unit. */
static inline bool size_read(struct str text, uint64_t *bytes)
{
	int64_t n;
	const char unit = text.n ? text.p[text.n - 1] : 0;
	const struct str digits = {text.p, text.n - (unit == 'M' || unit == 'G')};
	if (!str_to_i64(digits, &n) || n < 1 || n > 1 << 20)
		return false;
	*bytes = (uint64_t)n << (unit == 'M' ? 20 : 30);
	return true;
}

#endif
