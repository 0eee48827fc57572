/* A program to be sampled: spin_outer calls spin_inner, which takes nearly all of the CPU time that argv[1] says (milliseconds). With more words it
 * becomes that program afterwards, by exec in a child or, after "--", in its own place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int argc, char **argv)
{
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
