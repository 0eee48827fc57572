/* Sizes as options have them: "8", "8G" gibibytes, "500M" mebibytes, "64K" kibibytes, "2T" tebibytes. */
#ifndef OPSCOPE_BASE_SIZE_H
#define OPSCOPE_BASE_SIZE_H

#include "base/str.h"

#include <stdbool.h>
#include <string.h>

/* What was expected, for messages. */
#define SIZE_EXPECTED "8 or 8G (GiB) or 500M (MiB) was expected"

/* False: it is none, or less than 1 or more than 2^20 of its unit. */
static inline bool size_read(struct str text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	int64_t n;
	const char *unit = text.n ? memchr(units, text.p[text.n - 1], sizeof units - 1) : NULL;
	const struct str digits = {text.p, text.n - (unit != NULL)};
	if (!str_to_i64(digits, &n) || n < 1 || n > 1 << 20)
		return false;
	*bytes = (uint64_t)n << (unit ? 10 * (unit - units + 1) : 30);
	return true;
}

#endif
