/* A program that captures itself (opscope/capture.h): guest_capture LIBRARY WHAT FOLDER [NUMBER...]. Ends with 0; prints what the test has to know. */
#include "opscope/capture.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *library;

static int begin(const char *folder, int64_t max_bytes, uint32_t ring)
{
	const struct opscope_capture_options o = {.bytes = sizeof o, .ring = ring, .dir = folder, .max_bytes = max_bytes};
	return opscope_capture_begin(library, &o);
}

static void must(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(-error));
		_exit(1);
	}
}

static void one(const char *text)
{
	opscope_push(text);
	opscope_arg_i64("answer", 42);
	opscope_pop();
}

static const char *inside(const char *folder, const char *name)
{
	static char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static const char *made(const char *folder, long number)
{
	char name[32];
	snprintf(name, sizeof name, "%ld", number);
	const char *path = inside(folder, name);
	mkdir(path, 0755);
	return path;
}

/* ---- one capture after the other ---- */

static _Atomic bool over;

/* Always in a range of each capture that goes by; texts that no capture has seen yet among them. */
static void *talk(void *number)
{
	opscope_push("before all captures");
	for (long i = 0; !over; i++) {
		char text[64];
		snprintf(text, sizeof text, "of %ld: %ld", (long)(intptr_t)number, i % 3000);
		opscope_push("outer");
		one(i % 7 ? "inner" : text);
		opscope_pop();
	}
	opscope_pop();
	return NULL;
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;
	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* Half of a second, after which the end of a capture may have given up waiting for a thread that is in the midst of writing: its addresses stay then. */
enum { SOON_MS = 500 };

static int64_t clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Prints how many mappings the captures left behind that had nobody to wait for; the first ones make what stays for all. */
static int rounds(const char *folder, long n, long threads)
{
	enum { MOST = 16, FIRST = 3 };
	pthread_t t[MOST];
	int more = 0;
	for (long i = 0; i < threads && i < MOST; i++)
		pthread_create(&t[i], NULL, talk, (void *)(intptr_t)i);
	for (long i = 0; i < n; i++) {
		char text[32];
		bool ring = i % 3 == 2;
		int before = mappings();
		snprintf(text, sizeof text, "window %ld", i);
		must(begin(made(folder, i), ring ? (int64_t)(2 + i % 4) << 20 : 0, ring), "begin");
		opscope_step(i);
		one(text);
		one("in each");
		int64_t began = clock_ms();
		must(opscope_capture_end(library), "end");
		if (i >= FIRST && clock_ms() - began < SOON_MS)
			more += mappings() - before;
		one("in none");
	}
	over = true;
	for (long i = 0; i < threads && i < MOST; i++)
		pthread_join(t[i], NULL);
	printf("%d\n", more);
	return 0;
}

/* ---- what else happens ---- */

static int forks(const char *folder)
{
	must(begin(made(folder, 0), 0, 0), "begin");
	opscope_push("parent");
	pid_t child = fork();
	if (child == 0) {
		one("child, not recorded");
		must(begin(made(folder, 1), 0, 0), "begin of the child");
		one("child");
		must(opscope_capture_end(library), "end of the child");
		exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	opscope_pop();
	must(opscope_capture_end(library), "end");
	return status != 0;
}

static int errors(const char *folder)
{
	struct opscope_capture_options o = {.bytes = 4, .dir = folder};
	printf("library: %d\n", opscope_capture_begin("/nowhere.so", &o));
	printf("end: %d\n", opscope_capture_end(library));
	printf("bytes: %d\n", opscope_capture_begin(library, &o));
	printf("none: %d\n", opscope_capture_begin(library, NULL));
	printf("ring: %d\n", begin(folder, 0, 1));
	printf("small: %d\n", begin(folder, 4096, 0));
	printf("missing: %d\n", begin(inside(folder, "missing"), 0, 0));
	printf("file: %d\n", begin(library, 0, 0));
	printf("begin: %d\n", begin(folder, 0, 0));
	printf("twice: %d\n", begin(folder, 0, 0));
	printf("end: %d\n", opscope_capture_end(library));
	printf("again: %d\n", opscope_capture_end(library));
	return 0;
}

static int leaves(const char *folder)
{
	must(begin(folder, 0, 0), "begin");
	opscope_push("open");
	one("work");
	exit(0);
}

/* More than the first room of the file, so that more is asked for when it is gone. */
static int gone(const char *folder)
{
	enum { MANY = 60000 };
	must(begin(made(folder, 0), 0, 0), "begin");
	one("before");
	char command[4200];
	snprintf(command, sizeof command, "rm -r '%s'", inside(folder, "0"));
	if (system(command))
		return 1;
	for (int i = 0; i < MANY; i++)
		one("after");
	must(opscope_capture_end(library), "end");
	must(begin(made(folder, 1), 0, 0), "begin again");
	one("again");
	must(opscope_capture_end(library), "end again");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	library = argv[1];
	const char *what = argv[2], *folder = argv[3];
	if (strcmp(what, "rounds") == 0 && argc == 6)
		return rounds(folder, atol(argv[4]), atol(argv[5]));
	if (strcmp(what, "forks") == 0)
		return forks(folder);
	if (strcmp(what, "errors") == 0)
		return errors(folder);
	if (strcmp(what, "leaves") == 0)
		return leaves(folder);
	if (strcmp(what, "gone") == 0)
		return gone(folder);
	if (strcmp(what, "recorded") == 0) {
		one("recorded");
		printf("%d\n", begin(folder, 0, 0));
		return 0;
	}
	return 2;
}
