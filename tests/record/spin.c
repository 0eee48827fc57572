/* A program to be sampled: spin_outer calls spin_inner, which takes nearly all of the CPU time that argv[1] says (milliseconds). With more words it
 * becomes that program afterwards, by exec in a child or, after "--", in its own place. "made" before all runs code that it makes itself for that
 * long, and names it in /tmp/perf-PID.map as CPython does; it prints its process id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long counter;

static long cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) static void spin_inner(void)
{
	for (int i = 0; i < 2000000; i++)
		counter += (unsigned long)i;
}

__attribute__((noinline)) static void spin_outer(long ms)
{
	for (long end = cpu_ms() + ms; cpu_ms() < end;)
		spin_inner();
}

/* Counts down from two millions. */
static void run_made(long ms)
{
#ifdef __x86_64__
	static const unsigned char code[] = {0xb9, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	char path[64];
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	FILE *f = p == MAP_FAILED ? NULL : fopen(path, "w");
	if (!f)
		exit(77);
	fprintf(f, "%lx %zx py::work:/models/train.py\n", (unsigned long)p, sizeof code);
	fclose(f);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	memcpy(p, code, sizeof code);
	void (*made)(void) = (void (*)(void))(unsigned long)p;
	for (long end = cpu_ms() + ms; cpu_ms() < end;)
		made();
#else
	(void)ms;
	exit(77);
#endif
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "made") == 0) {
		run_made(atol(argv[2]));
		return 0;
	}
	spin_outer(argc > 1 ? atol(argv[1]) : 0);
	if (argc < 3)
		return 0;
	if (strcmp(argv[2], "--") == 0)
		execvp(argv[3], argv + 3);
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}
