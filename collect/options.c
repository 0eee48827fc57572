#include "options.h"

#include "glibc.h"
#include "sys.h"

#include <string.h>

enum { OPTIONS_MOST = 32, OPTIONS_BYTES = 16384 };

static struct {
	bool read;
	const char *name[OPTIONS_MOST];
	const char *value[OPTIONS_MOST];
	int n;
	char text[OPTIONS_BYTES];
	size_t n_text;
	char left_out[64];              /* the first one that had no place */
} options;

extern char **environ;

/* What option() is asked for, without "OPSCOPE_". The values are kept in the recording: no other variable is, as it may hold a secret. */
static const char *const options_known[] = {
	"ASK", "CUDA_PROFILER", "CUPTI", "CUPTI_PATH", "DELAY_NS", "DIR", "DURATION_NS", "FULL", "GPU_SAMPLES", "GRAPH", "MAX_SIZE", "MEMORY", "RANGE",
	"STEPS", "STEP_RANGE", "SYNC",
};

static bool options_is_known(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof options_known / sizeof options_known[0]; i++)
		if (strlen(options_known[i]) == n && memcmp(options_known[i], name, n) == 0)
			return true;
	return false;
}

/* None at all for a process with more rights than its caller, who chose the environment: opscope would write files and load libraries where that
 * caller says. */
void options_read(void)
{
	if (options.read)
		return;
	options.read = true;
	for (char **e = getauxval(AT_SECURE) ? NULL : environ; e && *e; e++) {
		const char *eq = strncmp(*e, "OPSCOPE_", 8) == 0 ? strchr(*e, '=') : NULL;
		if (!eq || !eq[1] || !options_is_known(*e + 8, (size_t)(eq - *e) - 8))
			continue;
		size_t n = strlen(*e + 8) + 1;
		if (options.n == OPTIONS_MOST || options.n_text + n > sizeof options.text) {
			size_t name = (size_t)(eq - *e);
			if (!options.left_out[0])
				memcpy(options.left_out, *e, name < sizeof options.left_out ? name : sizeof options.left_out - 1);
			continue;
		}
		char *copy = memcpy(options.text + options.n_text, *e + 8, n);
		options.n_text += n;
		copy[eq - *e - 8] = 0;
		options.name[options.n] = copy;
		options.value[options.n++] = copy + (eq - *e - 8) + 1;
	}
}

const char *option(const char *name)
{
	for (int i = 0; i < options.n; i++)
		if (strcmp(options.name[i], name) == 0)
			return options.value[i];
	return NULL;
}

int64_t option_bytes(const char *name)
{
	const char *v = option(name), *end = "";
	int64_t n = v ? sys_number(v, &end) : 0;
	return *end ? 0 : n;
}

bool options_at(int i, const char **name, const char **value)
{
	if (i >= options.n)
		return false;
	*name = options.name[i];
	*value = options.value[i];
	return true;
}

const char *options_left_out(void) { return options.left_out; }
