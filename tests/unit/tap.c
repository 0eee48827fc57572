/* Skipping with a reason, in TAP as TAP has it: "ok 8 - test_x # SKIP why". cmocka 1.1 writes "not ok 8 # SKIP test_x", which counts as failed. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

static const char *tap_why = "";

void skip_because(const char *why)
{
	tap_why = why;
	skip();
}

/* Of a stream that is buffered by lines: one comes at a time. */
static ssize_t tap_write(void *context, const char *text, size_t n)
{
	int number, name = 0;
	char line[512] = "";
	if (n < sizeof line && sscanf(memcpy(line, text, n), "not ok %d # SKIP %n", &number, &name) == 1 && name)
		return dprintf(STDOUT_FILENO, "ok %d - %.*s # SKIP %s\n", number, (int)strcspn(line + name, "\n"), line + name, tap_why) < 0 ? 0 : (ssize_t)n;
	return write(STDOUT_FILENO, text, n);
}

__attribute__((constructor)) static void tap_begin(void)
{
	const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");
	FILE *f = form && strcmp(form, "TAP") == 0 ? fopencookie(NULL, "w", (cookie_io_functions_t){.write = tap_write}) : NULL;
	if (f && setvbuf(f, NULL, _IOLBF, BUFSIZ) == 0)
		stdout = f;
}
