/* The fast JSON reader gives what the strict one gives, on any bytes: of a text that is read for the first time, of the same text when
 * its glue is known, and of its beginnings, as windows cut it. */
#include "../tests/unit/glue_same.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { LONGEST = 2048, CUTS = 8 };
	if (size > LONGEST)
		size = LONGEST;
	struct json_glue g;
	json_glue_init(&g);
	for (size_t cut = 0; cut < CUTS; cut++) {
		size_t n = cut < 2 ? size : size - size * cut / (CUTS * 4) - cut;
		if (n > size)
			break;
		/* From the heap and exact but for the padding, so that a sanitizer sees a read too far. */
		char *copy = calloc(n + JSON_PADDING, 1);
		if (n)
			memcpy(copy, data, n);
		if (!glue_same_text(&g, copy, n))
			abort();
		free(copy);
	}
	json_glue_release(&g);
	return 0;
}
