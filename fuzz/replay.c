/* Runs one fuzz target over files, so that its corpus is a test with any compiler: replay FILE-or-FOLDER... Speaks TAP. */
#include "base/buf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_run;

static bool replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return false;
	}
	struct buf b = {0};
	char block[1 << 16];
	for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
		buf_put(&b, block, n);
	fclose(f);
	/* Exact size on the heap: sanitizers see any read beyond. */
	uint8_t *copy = malloc(b.n ? b.n : 1);
	if (b.n)
		memcpy(copy, b.p, b.n);
	LLVMFuzzerTestOneInput(copy, b.n);
	printf("ok %u - %s\n", ++n_run, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	fflush(stdout);
	free(copy);
	buf_release(&b);
	return true;
}

static bool replay(const char *path)
{
	struct dirent **entry;
	int n = scandir(path, &entry, NULL, alphasort);
	if (n < 0)
		return replay_file(path);
	bool ok = true;
	for (int i = 0; i < n; i++) {
		struct buf name = {0};
		if (entry[i]->d_name[0] != '.') {
			buf_printf(&name, "%s/%s", path, entry[i]->d_name);
			buf_char(&name, 0);
			ok &= replay_file(name.p);
		}
		buf_release(&name);
		free(entry[i]);
	}
	free(entry);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok = argc > 1;
	for (int i = 1; i < argc; i++)
		ok &= replay(argv[i]);
	printf("1..%u\n", n_run);
	return ok ? 0 : 1;
}
