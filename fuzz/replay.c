/* Runs one fuzz target over files, so that its corpus is a test with any compiler:
 * replay [--mutate=N] FILE-or-FOLDER... Speaks TAP. With --mutate each file is followed by N mutations of it, always the same
 * ones, by the target's own mutator. */
#include "base/buf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) __attribute__((weak));

static unsigned n_run, n_mutations;
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

/* In place of libFuzzer's: a few bytes flipped or set. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	for (uint64_t i = next_random() % 4 + 1; size && i; i--) {
		uint8_t *at = &data[next_random() % size];
		*at = next_random() % 2 ? *at ^ (uint8_t)(1u << next_random() % 8) : (uint8_t)next_random();
	}
	return size;
}

static void run_mutations(const uint8_t *data, size_t n)
{
	size_t room = n * 2 + 65536;
	for (unsigned i = 0; i < n_mutations && LLVMFuzzerCustomMutator; i++) {
		uint8_t *copy = malloc(room);
		memcpy(copy, data, n);
		random_state = i;
		size_t size = LLVMFuzzerCustomMutator(copy, n, room, i * 2654435761u >> 4);
		copy = realloc(copy, size ? size : 1);
		LLVMFuzzerTestOneInput(copy, size);
		free(copy);
	}
}

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
	if (b.n)
		run_mutations(copy, b.n);
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
		if (strncmp(argv[i], "--mutate=", 9) == 0)
			n_mutations = (unsigned)atoi(argv[i] + 9);
		else
			ok &= replay(argv[i]);
	printf("1..%u\n", n_run);
	return ok ? 0 : 1;
}
